/** What was seen of a packet, beside what the walk says of it. */
import { errnoText } from "../../ffi/errno.ts";
import { chainText, placeText } from "../../net/netfilter/text.ts";
import type { RuleChain } from "../../net/netfilter/ruleset.ts";
import type { Code } from "../codes.ts";
import type { End } from "../walk/traveller.ts";
import type { Explanation } from "../walk/walk.ts";
import type { LiveRun } from "./run.ts";
import type { Sight } from "./sights.ts";

export interface Judgement {
  /** `open`: nothing was seen that decides. */
  agrees: "yes" | "contradiction" | "decides" | "open";
  /** What became of the packet. */
  text: string;
  /** What the walk left open. */
  verdict?: End["verdict"];
}

/** Where a packet that nobody has dropped was seen last. */
export interface SilentEnd {
  sight: Sight;
  /** The next priority at which the hook would have shown it; undefined when it has passed the hook. */
  before?: number;
  /** The chains that are known to be between the two. */
  between: readonly RuleChain[];
}

export function isSilent({ sights, answer }: LiveRun): boolean {
  return answer === undefined && !sights.some(({ verdict }) => verdict === "drop");
}

export function lastSight(sights: readonly Sight[]): Sight | undefined {
  return sights.findLast(({ direction }) => direction === "answer") ?? sights.at(-1);
}

export function compareWithWalk(explanation: Explanation, seen: LiveRun, silentEnd?: SilentEnd): Judgement {
  const { verdict } = explanation, text = fateText(seen, silentEnd), agrees = agreement(explanation, seen, silentEnd);
  const doubt = seen.isLossy
    ? "some of the trace was lost"
    : explanation.ways.all > 1
    ? `this packet took one of ${explanation.ways.all} ways`
    : undefined;
  if (agrees === "contradiction" && doubt !== undefined) return { agrees: "open", text: `${text}; ${doubt}` };
  if (agrees !== "yes" || verdict !== "unknown") return { agrees, text };
  return { agrees: "decides", text, verdict: seen.answer === "answered" ? "arrives" : "stops" };
}

/** Whatever decides agrees with a walk that has left it open. */
function agreement(explanation: Explanation, seen: LiveRun, silentEnd?: SilentEnd): Judgement["agrees"] {
  const { verdict, end } = explanation, { sights, answer } = seen, last = lastSight(sights);
  const drop = sights.find((sight) => sight.verdict === "drop"), isUnknown = verdict === "unknown";
  const yesIf = (isSo: boolean) => isSo ? "yes" : "contradiction";
  const isToldAlone = answer !== undefined && drop === undefined && isFeignable(explanation, sights);
  if (isToldAlone && (answer === "answered" || verdict !== "stops")) return "open";
  if (answer === "answered") return yesIf(verdict !== "stops");
  if (drop !== undefined || answer !== undefined) {
    if (verdict === "leaves") return yesIf(drop === undefined && isToldOutside(end, sights));
    const isStop = isUnknown || (verdict === "stops" && isSameStop(explanation, drop));
    return !isStop && drop !== undefined && mayGoOn(end) ? "open" : yesIf(isStop);
  }
  if (last === undefined) return "open";
  const isWithin = silentEnd !== undefined &&
    (silentEnd.before !== undefined || !["input", "postrouting"].includes(last.hook));
  if (isUnknown) return isWithin ? "yes" : "open";
  if (verdict === "leaves") return yesIf(!isWithin && isLastIn(end, last, "postrouting"));
  if (verdict === "stops") return isBeyond(explanation, sights) ? "contradiction" : stopAgrees(explanation, sights);
  return !isWithin && isLastIn(end, last, "input") ? "open" : "contradiction";
}

/** In the sender's namespace, root of the container can answer as anybody. */
function isFeignable({ end }: Explanation, sights: readonly Sight[]): boolean {
  const sender = sights[0]?.netns;
  return sender?.container !== undefined && sights.every(({ netns }) => netns === sender) &&
    ("cause" in end || end.netns !== sender);
}

function isLastIn(end: End, last: Sight | undefined, hook: Sight["hook"]): boolean {
  return !("cause" in end) && last?.netns === end.netns && last.hook === hook && last.direction === "going";
}

/** The refusal came in by the link by which the packet left, or, where it was not seen, the packet left. */
function isToldOutside(end: End, sights: readonly Sight[]): boolean {
  if (end.verdict !== "leaves") return false;
  const answers = sights.filter(({ direction }) => direction === "answer");
  if (answers.length === 0) return isLastIn(end, sights.at(-1), "postrouting");
  return answers.some(({ netns, hook, input }) =>
    netns === end.netns && hook === "prerouting" && input === end.link.name
  );
}

/** Stops that the kernel tells the sender. */
const TOLD: ReadonlySet<Code> = new Set([
  ...["no-link", "link-down", "no-carrier", "no-address", "no-route", "route-refused", "forwarding-off"] as const,
  ...["link-forwarding-off", "nobody-listens", "listens-on-loopback", "no-mapping", "gateway-missing"] as const,
]);

/** What goes to a wrong receiver gets some way yet, and may be dropped there. */
function mayGoOn(end: End): boolean {
  return "cause" in end && ["wrong-neighbour", "leads-away"].includes(end.cause.code);
}

function isSameStop({ end }: Explanation, drop: Sight | undefined): boolean {
  if (!("cause" in end)) return false;
  const { code, place } = end.cause, by = drop?.by;
  if (drop === undefined) return TOLD.has(code) || place?.chain.isLegacy === true;
  return place !== undefined && by !== undefined && chainText(place.chain) === chainText(by.chain) &&
    place.rule?.handle === by.rule?.handle;
}

/** The walk ends in the answer, of which nothing was seen. */
function stopAgrees({ steps }: Explanation, sights: readonly Sight[]): Judgement["agrees"] {
  const isOfAnswer = steps.at(-1)?.direction === "answer";
  return isOfAnswer && !sights.some(({ direction }) => direction === "answer") ? "open" : "yes";
}

const RANK: Readonly<Record<string, number>> = {
  ...{ output: 0, prerouting: 0, input: 2, forward: 2, postrouting: 3 },
  ...{ route: 1, rp_filter: 1, forwarding: 1 },
};

/** Whether the packet was seen where it cannot come, as the walk has it. */
function isBeyond({ steps, end }: Explanation, sights: readonly Sight[]): boolean {
  if (!("cause" in end)) return false;
  const { netns, what, place } = end.cause, rank = RANK[what], direction = steps.at(-1)?.direction;
  if (direction === "going" && sights.some((sight) => sight.direction === "answer")) return true;
  return rank !== undefined && !mayGoOn(end) &&
    sights.some((sight) =>
      sight.netns === netns && sight.direction === direction &&
      (RANK[sight.hook]! > rank ||
        (sight.hook === what && sight.priority > (place?.chain.base?.priority ?? Infinity)))
    );
}

function fateText({ sights, answer }: LiveRun, silentEnd?: SilentEnd): string {
  if (answer === "answered") return "it was answered";
  const drop = sights.find(({ verdict }) => verdict === "drop"), last = drop ?? lastSight(sights);
  const refusal = answer === undefined ? "" : `the sender was told: ${errnoText(answer.errno)}`;
  if (last === undefined) return refusal || "nothing of it was seen";
  const { netns, hook, by, direction } = last, what = direction === "answer" ? "the answer" : "it";
  const where = `${netns.label}, ${hook}`,
    feigned = netns.container === undefined ? "" : " (its root may feign that)";
  if (drop !== undefined) {
    return `${what} was dropped in ${where}${by === undefined ? "" : `, by ${placeText(by)}`}${feigned}`;
  }
  if (refusal !== "") return `${refusal}; ${what} was seen last in ${where}`;
  return `${what} was seen last in ${where}${silentText(silentEnd)}${feigned}`;
}

const BEHIND: Readonly<Record<string, string>> = {
  prerouting: "behind it are routes, rp_filter, forwarding",
  input: "behind it is the program's socket",
  forward: "behind it is postrouting",
  output: "behind it are routes",
  postrouting: "behind it are the link, its neighbour, and what is beyond",
};

function silentText(end: SilentEnd | undefined): string {
  if (end === undefined) return "";
  const { sight: { hook, priority }, before, between } = end;
  if (before === undefined) return `, which it passed: ${BEHIND[hook]}`;
  const known = between.map(chainText).join(", ");
  return `, and ended there between the priorities ${priority} and ${before}: ${
    known || "nothing that can be listed"
  }`;
}
