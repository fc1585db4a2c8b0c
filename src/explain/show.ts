/** An explanation for people: its first line is the answer. */
import { type Maker, makerOf } from "../net/netfilter/owner.ts";
import { ownTableNames } from "../resources/packets/shared/own-tables.ts";
import { placeText } from "../net/netfilter/text.ts";
import { partyText, protocolText, type Question } from "./question.ts";
import type { LiveProof } from "./live/prove.ts";
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

const MARKS: Record<Step["state"], string> = { ok: "ok  ", stop: "STOP", unknown: "?   ", note: "note" };

export function explainedInFull({ question, explanation, reason, live }: Answered): string {
  const { from, to } = question, ends = `${partyText(from)} → ${partyText(to)} ${protocolText(question)}`;
  if (explanation === undefined) return `${ends}  unknown: ${reason}\n`;
  const { verdict, steps, end, ways } = explanation;
  const share = ways.all > 1 && ways.stopped > 0 ? ` on ${ways.stopped} of ${ways.all} ways` : "";
  const told = `${verdict}${share}: ${endText(explanation)}`;
  const lines = [`${ends}  ${live === undefined ? told : liveText(live, told)}`, ""];
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
  if (live !== undefined) lines.push("", ...liveLines(live));
  return `${lines.join("\n")}\n`;
}

function liveText({ agrees, verdict, text }: LiveProof, told: string): string {
  if (agrees === "contradiction") return `contradiction: the walk says "${told}", but ${text}`;
  return agrees === "decides" ? `${verdict}, as was seen: ${text}` : told;
}

const AGREEMENTS: Record<LiveProof["agrees"], string> = {
  yes: "agrees: ",
  decides: "decides: ",
  open: "does not decide: ",
  contradiction: "contradiction, a defect of this program; please report all of this: ",
};

function liveLines(live: LiveProof): string[] {
  const ways = (["going", "answer"] as const).flatMap((direction) => {
    const sights = live.sights.filter((sight) => sight.direction === direction);
    const hooks = [...Map.groupBy(sights, ({ netns }) => netns.label)].map(([label, seen]) =>
      `${label}: ${[...new Set(seen.map(({ hook }) => hook))].join(", ")}`
    );
    return hooks.length === 0
      ? []
      : [`       ${direction === "going" ? "seen in" : "answer in"} ${hooks.join("; ")}`];
  });
  const rules = live.sights.filter(({ by, verdict }) => by?.rule !== undefined || verdict !== "accept")
    .map(({ verdict, by }) => `       ${verdict}: ${by === undefined ? "" : placeText(by)}`);
  const report = live.agrees === "contradiction" ? live.involved : [];
  return [`live   ${sentText(live)}`, ...ways, ...rules, `       ${AGREEMENTS[live.agrees]}${live.text}`, ...report];
}

export function sentText({ way: { flow: { protocol }, watchMs }, mark, isRefused }: LiveProof): string {
  if (isRefused) return "nothing was sent";
  if (watchMs !== undefined && mark === undefined) return `no packet of it came in ${watchMs / 1000} s`;
  const kind = protocol === 6 ? "a connection" : protocol === 17 ? "an empty datagram" : "an echo";
  const number = mark === undefined
    ? ""
    : `${protocol === 6 || protocol === 17 ? "from port" : "with the number"} ${mark}`;
  return watchMs === undefined ? `sent ${kind} ${number}` : `a packet came ${number}`;
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
