/** A walk is put to the proof: a packet of the flow, the kernel's trace of it, and, where that ends in silence, once more with signs. */
import { HOOK_NAMES, type HookName, type RuleChain } from "../../net/netfilter/ruleset.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { UntraceableError } from "../../ffi/netlink/nftables/trace.ts";
import { formatAddress } from "../../net/address.ts";
import { TCP, UDP } from "../../net/ip-protocol.ts";
import { readSysctl } from "../../ffi/sysctl.ts";
import { placeText, ruleLine } from "../../net/netfilter/text.ts";
import type { Reading } from "../reading.ts";
import { codeIn, type Explanation } from "../walk/walk.ts";
import { compareWithWalk, isSilent, type Judgement, lastSight, type SilentEnd } from "./compare.ts";
import { type LiveRun, type LiveWay, run, type SignsIn } from "./run.ts";
import type { Sight } from "./sights.ts";

export interface LiveProof extends Judgement, LiveRun {
  way: LiveWay;
  /** For the report of a contradiction. */
  kernel?: string;
  involved: readonly string[];
  /** Nothing was tried, for the reason in the text. */
  isRefused?: true;
}

/** `again` walks anew: what has changed meanwhile is no contradiction. */
export function prove(way: LiveWay, again: () => Explanation | undefined): LiveProof {
  const refused = refusalOf(way);
  if (refused !== undefined) return notTried(way, refused);
  try {
    return tried(way, again);
  } catch (error) {
    if (error instanceof UntraceableError || error instanceof SyscallError) return notTried(way, error.message);
    throw error;
  }
}

function refusalOf(
  { flow: { protocol, destination, destinationPort }, origin, watchMs }: LiveWay,
): string | undefined {
  if (watchMs !== undefined) return undefined;
  if (origin.input !== undefined) return "what comes from outside cannot be sent here, only waited for: --watch";
  if (destination === undefined) return "outside is nobody's address: name one to send to, or wait with --watch";
  const hasPort = protocol === TCP || protocol === UDP;
  return hasPort && destinationPort === undefined ? "it needs a port, as in tcp/80" : undefined;
}

function notTried(way: LiveWay, text: string): LiveProof {
  const nothing = { sights: [], answer: undefined, isLossy: false, involved: [] };
  return { ...nothing, agrees: "open", text, isRefused: true, way };
}

function tried(way: LiveWay, again: () => Explanation | undefined): LiveProof {
  const isWatching = way.watchMs !== undefined, { explanation, flow: { family } } = way;
  let seen = run(way, (netns) => isWatching ? plainSigns(netns, family) : []), silentEnd: SilentEnd | undefined;
  if (!isWatching && (isSilent(seen) || isToldUnseen(seen))) ({ seen, silentEnd } = narrowed(way, seen));
  const judged = compareWithWalk(explanation, seen, silentEnd), proof = { ...judged, ...seen, way, involved: [] };
  if (judged.agrees !== "contradiction") return proof;
  const now = again(), isSame = now?.verdict === explanation.verdict && codeIn(now.end) === codeIn(explanation.end);
  if (isSame) return { ...proof, ...reportOf(proof) };
  return { ...proof, agrees: "open", text: `${judged.text}; meanwhile the walk says otherwise: ${now?.verdict}` };
}

function reportOf({ way, sights }: LiveProof): Pick<LiveProof, "kernel" | "involved"> {
  const { end } = way.explanation, kernel = readSysctl("kernel/osrelease");
  const places = ["cause" in end ? end.cause.place : undefined, ...sights.map(({ by }) => by)].filter((by) =>
    by?.rule
  );
  const lines = places.map((by) => `${placeText(by!)}: ${ruleLine(by!.rule!, by!.chain.family)}`);
  const { destination, protocol, destinationPort } = way.flow;
  const to = destination === undefined ? [] : [`dst host ${formatAddress(destination)}`];
  const port = destinationPort === undefined ? [] : [`dst port ${destinationPort}`];
  const functions = `which function of the kernel's: pwru '${
    [`${way.flow.family === 4 ? "ip" : "ip6"} proto ${protocol}`, ...to, ...port].join(" and ")
  }'`;
  return { kernel, involved: [...new Set(lines), `Linux ${kernel}; ${functions}`] };
}

function chainsAt(netns: Reading, hook: HookName, family: 4 | 6): RuleChain[] {
  const families = ["inet", family === 4 ? "ip" : "ip6"];
  return (netns.rules()?.chains ?? []).filter((chain) =>
    chain.base?.hook === hook && families.includes(chain.family)
  );
}

/** A chain of somebody's shows as well that the packet comes to the hook. One of the older tables is in no trace, and one that translates sees first packets only. */
function plainSigns(netns: Reading, family: 4 | 6) {
  return (["input", "forward", "postrouting"] as const)
    .filter((hook) => chainsAt(netns, hook, family).every(({ isLegacy, base }) => isLegacy || base!.type === "nat"))
    .map((hook) => ({ hook: HOOK_NAMES.indexOf(hook), priority: 0 }));
}

/** Where the kernel's own parts are, and what others usually take (linux/netfilter_ipv4.h). */
const USUAL = [-401, -300, -200, -150, -100, 0, 50, 100, 225, 300];
/** Before the very last of the kernel's. */
const LAST = 2147483646;
const NEXT: Partial<Record<HookName, readonly HookName[]>> = {
  prerouting: ["input", "forward"],
  output: ["postrouting"],
  forward: ["postrouting"],
};

/** Each chain of ours slows every packet of the namespace: first those that tell the hook, then those within it. */
function narrowed(way: LiveWay, seen: LiveRun): { seen: LiveRun; silentEnd?: SilentEnd } {
  const last = lastSight(seen.sights);
  if (last === undefined) return { seen };
  const ends = HOOK_NAMES.map((_, hook) => ({ hook, priority: LAST }));
  const coarse = run(way, (netns) => netns === last.netns ? ends : [], true), sight = lastSight(coarse.sights);
  if (!isSilent(coarse) || sight === undefined || !reaches(coarse, last)) return { seen: lossy(coarse) };
  const signs: SignsIn = (netns) => netns === sight.netns ? bracketFor(sight, way.flow.family) : [];
  const fine = signs(sight.netns).length === 0 ? coarse : run(way, signs, true), end = lastSight(fine.sights);
  if (!isSilent(fine) || end === undefined || !reaches(fine, sight)) return { seen: lossy(fine) };
  const ahead = signs(end.netns).filter(({ hook, priority }) =>
    HOOK_NAMES[hook] === end.hook && priority > end.priority
  );
  if (ahead.length === 0) return { seen: fine, silentEnd: { sight: end, between: [] } };
  const before = Math.min(...ahead.map(({ priority }) => priority));
  const between = chainsAt(end.netns, end.hook, way.flow.family).filter(({ base }) =>
    base!.priority >= end.priority && base!.priority < before
  );
  return { seen: fine, silentEnd: { sight: end, before, between } };
}

/** An error of ICMP is in no trace of ours. */
function isToldUnseen({ sights, answer }: LiveRun): boolean {
  return typeof answer === "object" && sights.length > 0 &&
    sights.every(({ direction, verdict }) => direction === "going" && verdict !== "drop");
}

/** A packet that comes less far than the one before it: some of the trace is lost, or they do not fare alike. */
function lossy(seen: LiveRun): LiveRun {
  return isSilent(seen) ? { ...seen, isLossy: true } : seen;
}

function reaches({ sights }: LiveRun, { netns, hook, direction }: Sight): boolean {
  return sights.some((each) => each.netns === netns && each.hook === hook && each.direction === direction);
}

/** Behind each priority that is, or may be, in use, from where the packet was seen. */
function bracketFor({ netns, hook: last, priority: from }: Sight, family: 4 | 6) {
  const hooks = from === LAST ? NEXT[last] ?? [] : [last];
  return hooks.flatMap((hook) => {
    const used = chainsAt(netns, hook, family).map(({ base }) => base!.priority + 1);
    const all = new Set([...USUAL.map((priority) => priority + 1), ...used, LAST]);
    return [...all].filter((priority) => hook !== last || priority > from).map((priority) => ({
      hook: HOOK_NAMES.indexOf(hook as typeof HOOK_NAMES[number]),
      priority,
    }));
  });
}
