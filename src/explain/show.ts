/** An explanation for people: its first line is the answer. */
import { type Maker, makerOf } from "../net/netfilter/owner.ts";
import { ownTableNames } from "../resources/packets/shared/own-tables.ts";
import { partyText, protocolText, type Question } from "./question.ts";
import type { Cause, Remedy, Step } from "./walk/traveller.ts";
import type { Explanation } from "./walk/walk.ts";

export interface Answered {
  question: Question;
  /** Undefined when nothing could be walked, for the reason. */
  explanation?: Explanation;
  reason?: string;
}

const MARKS: Record<Step["state"], string> = { ok: "ok  ", stop: "STOP", unknown: "?   ", note: "note" };

export function explainedInFull({ question, explanation, reason }: Answered): string {
  const { from, to } = question, ends = `${partyText(from)} → ${partyText(to)} ${protocolText(question)}`;
  if (explanation === undefined) return `${ends}  unknown: ${reason}\n`;
  const { verdict, steps, end, ways } = explanation;
  const share = ways.all > 1 && ways.stopped > 0 ? ` on ${ways.stopped} of ${ways.all} ways` : "";
  const lines = [`${ends}  ${verdict}${share}: ${endText(explanation)}`, ""];
  let direction: Step["direction"] = "going";
  const width = Math.min(20, Math.max(...steps.map(({ what }) => what.length)));
  for (const step of steps) {
    if (step.direction !== direction) lines.push("  answer");
    direction = step.direction;
    lines.push(`  ${MARKS[step.state]}  ${step.what.padEnd(width)}  ${step.text}`);
  }
  if ("cause" in end) {
    const maker = makerIn(end.cause);
    if (maker !== undefined) lines.push("", `whose  ${makerText(maker)}`);
    const mends = (end.cause.mend ?? []).map(remedyText);
    lines.push("", ...mends.map((text, at) => `${at === 0 ? "mend" : "    "}   ${text}`), `code   ${end.cause.code}`);
  }
  return `${lines.join("\n")}\n`;
}

function endText({ end }: Explanation): string {
  return "cause" in end ? `${end.cause.what}, ${end.cause.text}` : end.text;
}

/** In a container, whose root can write any mark, nothing is called ours. */
export function makerIn({ netns, place }: Cause): Maker | undefined {
  if (place === undefined) return undefined;
  const rules = netns.rules() ?? { chains: [] };
  return makerOf(place, rules, netns.container === undefined ? { tables: ownTableNames() } : undefined);
}

function makerText({ name, network, containerId, remark }: Maker): string {
  const whose = [network && `network ${network}`, containerId && `container ${containerId}`].filter(Boolean).join(
    ", ",
  );
  return [name, whose, remark].filter(Boolean).join("; ");
}

function remedyText(remedy: Remedy): string {
  return "advice" in remedy ? remedy.advice : remedy.because ? `${remedy.run}   (${remedy.because})` : remedy.run;
}
