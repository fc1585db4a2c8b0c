/** A walk is put to the proof: a packet of the flow, the kernel's trace of it, and, where that ends in silence, once more with signs. */
import type { HookName, RuleChain } from "../../net/netfilter/ruleset.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { UntraceableError } from "../../ffi/netlink/nftables/trace.ts";
import { readSysctl } from "../../ffi/sysctl.ts";
import { placeText, ruleLine } from "../../net/netfilter/text.ts";
import type { Reading } from "../reading.ts";
import type { Explanation } from "../walk/walk.ts";
import { compareWithWalk, isSilent, type Judgement, lastSight, type SilentEnd } from "./compare.ts";
import { type LiveRun, type LiveWay, run, type SignsIn } from "./run.ts";
import { HOOK_NAMES, type Sight } from "./sights.ts";

export interface LiveProof extends Judgement, LiveRun {
  way: LiveWay;
  /** For the report of a contradiction. */
  kernel?: string;
  involved: readonly string[];
  /** Nothing was tried, for the reason in the text. */
  isRefused?: true;
}

const TCP = 6, UDP = 17;

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
  let seen = run(way, (netns) => plainSigns(netns, way.flow.family)), silentEnd: SilentEnd | undefined;
  const last = lastSight(seen.sights), { explanation } = way;
  if (way.watchMs === undefined && isSilent(seen) && last !== undefined) {
    const signs: SignsIn = (netns) =>
      netns === last.netns ? bracketFor(netns, last.hook, way.flow.family) : plainSigns(netns, way.flow.family);
    seen = run(way, signs);
    silentEnd = isSilent(seen) ? endOf(seen.sights, signs, way.flow.family) : undefined;
  }
  const judged = compareWithWalk(explanation, seen, silentEnd), proof = { ...judged, ...seen, way, involved: [] };
  if (judged.agrees !== "contradiction") return proof;
  const now = again(), isSame = now?.verdict === explanation.verdict && codeIn(now) === codeIn(explanation);
  if (isSame) return { ...proof, ...reportOf(proof) };
  return { ...proof, agrees: "open", text: `${judged.text}; rules or routes have changed meanwhile` };
}

function reportOf({ way, sights }: LiveProof): Pick<LiveProof, "kernel" | "involved"> {
  const { end } = way.explanation, kernel = readSysctl("kernel/osrelease");
  const places = ["cause" in end ? end.cause.place : undefined, ...sights.map(({ by }) => by)].filter((by) =>
    by?.rule
  );
  const lines = places.map((by) => `       ${placeText(by!)}: ${ruleLine(by!.rule!, by!.chain.family)}`);
  return { kernel, involved: [`       Linux ${kernel}`, ...new Set(lines)] };
}

function codeIn({ end }: Explanation): string | undefined {
  return "cause" in end ? end.cause.code : undefined;
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
const NEXT: Partial<Record<HookName, readonly HookName[]>> = {
  prerouting: ["input", "forward"],
  output: ["postrouting"],
  forward: ["postrouting"],
};

/** Behind each priority that is, or may be, in use. */
function bracketFor(netns: Reading, last: HookName, family: 4 | 6) {
  return [last, ...NEXT[last] ?? []].flatMap((hook) => {
    const used = chainsAt(netns, hook, family).map(({ base }) => base!.priority);
    return [...new Set([...USUAL, ...used])].map((priority) => ({
      hook: HOOK_NAMES.indexOf(hook as typeof HOOK_NAMES[number]),
      priority: priority + 1,
    }));
  });
}

function endOf(sights: readonly Sight[], signs: SignsIn, family: 4 | 6): SilentEnd | undefined {
  const sight = lastSight(sights);
  if (sight === undefined) return undefined;
  const { hook, priority, netns } = sight, at = HOOK_NAMES.indexOf(hook as typeof HOOK_NAMES[number]);
  const ahead = signs(netns).filter((each) => each.hook === at && each.priority > priority);
  const before = ahead.length === 0 ? undefined : Math.min(...ahead.map((each) => each.priority));
  const between = before === undefined
    ? []
    : chainsAt(netns, hook, family).filter(({ base }) => base!.priority >= priority && base!.priority < before);
  return { sight, before, between };
}
