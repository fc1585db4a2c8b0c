/** Explanations for people: the first line is the answer. */
import { type Maker, makerOf } from "../net/netfilter/owner.ts";
import { visible } from "../net/netfilter/foreign-name.ts";
import { ruleLine } from "../net/netfilter/text.ts";
import { ownTableNames } from "../resources/packets/shared/own-tables.ts";
import type { HostFinding } from "./host-findings.ts";
import { partyText, protocolText, type Question } from "./question.ts";
import type { LiveProof } from "./live/prove.ts";
import { liveHeadline, liveLines } from "./live/words.ts";
import type { Cause, Remedy, Step } from "./walk/traveller.ts";
import type { Explanation } from "./walk/walk.ts";

export interface Answered {
  question: Question;
  /** Undefined when nothing could be walked, for the reason. */
  explanation?: Explanation;
  reason?: string;
  /** Undefined when nobody asked for it. */
  live?: LiveProof;
}

/** What fits on a terminal; a line to run is not broken. */
const COLUMNS = 80, MOST_LINES = 24;
const MARKS: Record<Step["state"], string> = { ok: "ok  ", stop: "STOP", unknown: "?   ", note: "note" };

/** What passes is a line where several things were asked. */
export function explanationsText(answers: readonly Answered[], isVerbose: boolean): string {
  if (answers.length === 1) return inFull(answers[0]!, isVerbose);
  const differ = answers.filter((each) => !isWell(each)), well = answers.filter(isWell);
  if (isVerbose) return answers.map((each) => inFull(each, isVerbose)).join("\n");
  const brief = well.flatMap((each) => {
    return [folded(headline(each), "  "), ...mtuNotes(each).map((text) => folded(`  note  ${text}`, "        "))];
  });
  return [...differ.map((each) => inFull(each, isVerbose)), ...brief.length === 0 ? [] : [`${brief.join("\n")}\n`]]
    .join("\n");
}

/** A line for each way that differs, the host's findings first; the others are counted. */
export function overviewText(
  answers: readonly Answered[],
  findings: readonly HostFinding[],
  notes: readonly string[],
): string {
  const differ = answers.filter((each) => !isWell(each));
  const lines = [
    ...findings.map(({ code, text }) => `${code}  this host: ${text}`),
    ...differ.map((each) => `${codeText(each)}  ${visible(headline(each))}`),
  ];
  const well = answers.length - differ.length;
  const last = answers.length === 0 ? "nothing is attached" : `${well} of ${answers.length} ways arrive or leave`;
  const more = [...new Set([...notes, ...answers.flatMap(mtuNotes)])].map(visible);
  return `${[...lines, ...more, last].join("\n")}\n`;
}

/** What small packets pass, and large ones may not. */
function mtuNotes({ explanation }: Answered): string[] {
  const notes = explanation?.steps.filter(({ state, text }) => state === "note" && text.includes("MTU")) ?? [];
  return notes.map(({ what, text }) => `${what}: ${text}`);
}

function codeText({ explanation }: Answered): string {
  return explanation !== undefined && "cause" in explanation.end ? explanation.end.cause.code : "not-looked-at";
}

function isWell({ explanation }: Answered): boolean {
  return explanation?.verdict === "arrives" || explanation?.verdict === "leaves";
}

function inFull(answered: Answered, isVerbose: boolean): string {
  const { explanation } = answered, head = folded(headline(answered), "  ");
  if (explanation === undefined) return `${head}\n`;
  const seen = answered.live === undefined ? [] : liveLines(answered.live);
  const tail = [
    ..."cause" in explanation.end ? causeLines(explanation.end.cause) : seen.length > 0 ? [""] : [],
    ...seen.flatMap((line, at) => folded(`${at === 0 ? "live   " : "       "}${line}`, "         ").split("\n")),
  ];
  const steps = stepLines(explanation.steps), room = MOST_LINES - tail.length - head.split("\n").length - 1;
  const shown = isVerbose || steps.length <= room ? steps : shortened(steps, room);
  return `${[head, "", ...shown, ...tail].join("\n")}\n`;
}

export function headline({ question, explanation, reason, live }: Answered): string {
  const { from, to, family } = question, isNamed = [from, to].some((each) => each.is === "address");
  const by = family === 6 && !isNamed ? " by IPv6" : "";
  const ends = `${partyText(from)} → ${partyText(to)} ${protocolText(question)}${by}`;
  if (explanation === undefined) return `${ends}: unknown: ${reason}`;
  const { verdict, ways, end, isForStrangers } = explanation;
  const share = ways.all > 1 && ways.stopped > 0 ? ` on ${ways.stopped} of ${ways.all} ways` : "";
  const text = "cause" in end ? `${end.cause.what}: ${end.cause.text}` : end.text;
  const told = `${verdict}${share}${isForStrangers ? ", for a stranger's address" : ""}: ${text}`;
  return `${ends}: ${live === undefined ? told : liveHeadline(live, told)}`;
}

function stepLines(steps: readonly Step[]): string[] {
  const width = Math.min(16, Math.max(0, ...steps.map(({ what }) => what.length)));
  const lines: string[] = [];
  steps.forEach(({ direction, state, what, text }, at) => {
    if (direction === "answer" && steps[at - 1]?.direction !== "answer") lines.push("  the answer");
    const head = `  ${MARKS[state]}  ${what.padEnd(width)}  `;
    lines.push(...folded(`${head}${text}`, " ".repeat(Math.min(head.length, 26))).split("\n"));
  });
  return lines;
}

/** The last steps tell most. */
function shortened(lines: readonly string[], room: number): string[] {
  const kept = Math.max(3, room - 1);
  return [`  …     ${lines.length - kept} lines that pass: -v shows them`, ...lines.slice(-kept)];
}

function causeLines(cause: Cause): string[] {
  const maker = makerIn(cause), rule = cause.place?.rule;
  const whose = maker === undefined ? [] : folded(`whose  ${makerText(maker)}`, " ".repeat(7)).split("\n");
  const said = rule === undefined ? [] : [`rule   ${ruleLine(rule, cause.place!.chain.family)}`];
  const mends = (cause.mend ?? []).flatMap(remedyLines);
  const mend = mends.map((text, at) => `${at === 0 ? "mend " : "     "}  ${text}`);
  return ["", ...whose, ...said, ...mend, `code   ${cause.code}`];
}

/** In a container, whose root can write any mark, nothing is called ours. */
export function makerIn({ netns, place }: Cause): Maker | undefined {
  if (place === undefined) return undefined;
  const rules = netns.rules() ?? { chains: [] };
  return makerOf(place, rules, netns.container === undefined ? ownTableNames() : undefined);
}

function makerText({ name, network, containerId, remark }: Maker): string {
  const whose = [network && `network ${network}`, containerId && `container ${containerId}`].filter(Boolean).join(
    ", ",
  );
  return [name, whose, remark].filter(Boolean).join("; ");
}

/** Commands one a line, as they are typed. */
function remedyLines(remedy: Remedy): string[] {
  if ("advice" in remedy) return folded(`# ${remedy.advice}`, "#   ", COLUMNS - 7).split("\n");
  const lines = visible(remedy.run).split("; ");
  return remedy.because === undefined ? lines : [...lines.slice(0, -1), `${lines.at(-1)}   # ${remedy.because}`];
}

/** Broken at blanks; a word that is longer stays whole. */
function folded(text: string, indent: string, columns = COLUMNS): string {
  const lines: string[] = [];
  for (const word of visible(text).match(/\s*\S+/g) ?? []) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(word);
    else if (last.length + word.length <= columns) lines[lines.length - 1] = last + word;
    else lines.push(indent + word.trimStart());
  }
  return lines.join("\n");
}
