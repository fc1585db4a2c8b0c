/** The list in docs/conformance.md of what is asked, from the table of demands. */
import type { SpecDemand } from "../src/conformance/demand.ts";
import { everyKind } from "../src/conformance/subjects.ts";
import { wrapped } from "./option-pages.ts";

const HEADINGS = { everyPlugin: "### Of every plugin", known: "### Of plugins of a known kind" };
/** What the list replaces. */
const LIST = new RegExp(`^${HEADINGS.everyPlugin}\n[^]*?(?=^## )`, "m");

export function withDemands(page: string, demands: readonly SpecDemand[]): string {
  if (!LIST.test(page)) throw new Error(`the page has no heading "${HEADINGS.everyPlugin}", for the list of demands`);
  const [ofEvery, ofKnown] = [demands.filter(({ kinds }) => !kinds), demands.filter(({ kinds }) => kinds)];
  const list = (some: readonly SpecDemand[]) => some.map(item).join("\n");
  return page.replace(
    LIST,
    () => `${HEADINGS.everyPlugin}\n\n${list(ofEvery)}\n\n${HEADINGS.known}\n\n${list(ofKnown)}\n\n`,
  );
}

/** Kinds are told where not every one is asked. The report of a run says the section and the version. */
function item({ name, sentence, strength, kinds = everyKind }: SpecDemand): string {
  const facts = [strength, ...kinds.length === everyKind.length ? [] : [kinds.join(", ")]];
  return wrapped(`- \`${name}\`: ${sentence} (${facts.join("; ")})`);
}
