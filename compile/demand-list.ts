/** The list in docs/conformance.md of what is asked, from the table of demands. */
import type { SpecDemand } from "../src/conformance/demand.ts";
import { everyKind } from "../src/conformance/subjects.ts";

const HEADINGS = { everyPlugin: "### Of every plugin", known: "### Of plugins of a known kind" };
/** What the list replaces. */
const LIST = new RegExp(`^${HEADINGS.everyPlugin}\n[^]*?(?=^## )`, "m");
/** As deno.json has it for pages. */
const WIDTH = 118;

export function withDemands(page: string, demands: readonly SpecDemand[]): string {
  if (!LIST.test(page)) throw new Error(`the page has no heading "${HEADINGS.everyPlugin}", for the list of demands`);
  const [ofEvery, ofKnown] = [demands.filter(({ kinds }) => !kinds), demands.filter(({ kinds }) => kinds)];
  const list = (some: readonly SpecDemand[]) => some.map(item).join("\n");
  return page.replace(
    LIST,
    () => `${HEADINGS.everyPlugin}\n\n${list(ofEvery)}\n\n${HEADINGS.known}\n\n${list(ofKnown)}\n\n`,
  );
}

/** Kinds are told where not every one is asked, and a version where it is not the first. */
function item({ name, sentence, section, strength, since, kinds = everyKind }: SpecDemand): string {
  const facts = [
    strength,
    ...since === "0.1.0" ? [] : [`from ${since}`],
    ...kinds.length === everyKind.length ? [] : [kinds.join(", ")],
  ];
  return wrapped(`- \`${name}\`: ${sentence} (${section}; ${facts.join("; ")})`);
}

function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(word);
    else if (last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines.join("\n");
}
