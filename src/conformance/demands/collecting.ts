/** GC and STATUS, which came with 1.1.0, and that no verb but ADD and VERSION prints anything. */
import { type PluginAnswer, requireError, requireSilence, requireSuccess } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { everyKind } from "../subjects.ts";
import type { TrialAttachment } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";
import { requireAddressBack, whyNoPool, whyNoSecondContainer } from "./pool.ts";

const gc = { section: "Section 2, GC", strength: "should", since: "1.1.0", kinds: everyKind } as const;
const status = { section: "Section 2, STATUS", strength: "must", since: "1.1.0" } as const;

type Ended = PluginAnswer | UnmetDemand;

/** The calls that an engine makes after ADD, in versions that have them: each one's answer, or why it has none. */
export function callsAfterAdd(one: TrialAttachment): Ended[] {
  const { trial } = one;
  one.add();
  return [
    ...trial.knows("0.4.0") ? [endOf(() => one.call("CHECK"))] : [],
    ...trial.knows("1.1.0") ? [endOf(() => trial.collectGarbage([one]))] : [],
    endOf(() => one.call("DEL")),
  ];
}

function endOf(call: () => PluginAnswer): Ended {
  try {
    return call();
  } catch (error) {
    if (error instanceof UnmetDemand) return error;
    throw error;
  }
}

export function isSuccessful(ended: Ended): ended is PluginAnswer {
  return !(ended instanceof UnmetDemand) && ended.isSuccess;
}

export const collecting: readonly SpecDemand[] = [
  {
    ...gc,
    name: "gc-empty-list",
    sentence: "GC with an empty list of valid attachments succeeds",
    check(trial) {
      trial.attached("c1");
      requireSuccess(trial.collectGarbage([]));
    },
  },
  {
    ...gc,
    name: "gc-frees-addresses",
    sentence: "GC removes what attachments hold that are not in the list: their addresses are free again",
    kinds: ["main", "ipam"],
    unless: whyNoSecondContainer,
    check: (trial) =>
      requireAddressBack(trial, (one, { conf }) => {
        trial.host.removeContainer(one.container);
        requireSuccess(trial.collectGarbage([], conf));
      }),
  },
  {
    ...gc,
    name: "gc-keeps-valid",
    sentence: "GC leaves the attachments of the list alone: CHECK succeeds afterwards",
    strength: "implied",
    check(trial) {
      const valid = (trial.subject.attachesOnce ? ["c1"] : ["c1", "c2"]).map((name) => trial.attachment(name));
      for (const one of valid) one.add();
      requireSuccess(trial.collectGarbage(valid));
      for (const one of valid) one.check();
    },
  },
  {
    ...status,
    name: "status-succeeds",
    sentence: "STATUS of a network that could be attached to succeeds",
    kinds: everyKind,
    check: (trial) => requireSuccess(trial.call("STATUS")),
  },
  {
    ...status,
    name: "status-not-ready",
    sentence: "STATUS is an error when ADD could not work: the IPAM plugin of the configuration is not there",
    kinds: ["main"],
    unless: whyNoPool,
    check: (trial) => void requireError(trial.call("STATUS", { conf: { ipam: { type: "no-such-ipam" } } })),
  },
  {
    name: "success-prints-nothing",
    sentence: "CHECK, GC, DEL and STATUS print nothing when they succeed",
    section: "Section 2, GC; Appendix, Check example",
    strength: "implied",
    since: "0.1.0",
    kinds: everyKind,
    check(trial) {
      const calls = callsAfterAdd(trial.attachment("c1"));
      if (trial.knows("1.1.0")) calls.push(endOf(() => trial.call("STATUS")));
      for (const answer of calls.filter(isSuccessful)) requireSilence(answer);
    },
  },
];
