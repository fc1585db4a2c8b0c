/** GC and STATUS, which came with 1.1.0. */
import { VALID_ATTACHMENTS } from "../../cni/valid-attachments.ts";
import { requireError, requireSilence, requireSuccess } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { everyKind } from "../subjects.ts";
import type { Trial, TrialAttachment } from "../trial.ts";
import { requireAddressBack, whyNoPool, whyNoSecondContainer } from "./pool.ts";

const gc = { section: "Section 2, GC", strength: "must", since: "1.1.0", kinds: everyKind } as const;

function collect(trial: Trial, valid: readonly TrialAttachment[], conf: Record<string, unknown> = {}): void {
  const list = valid.map(({ name }) => name);
  const answer = trial.call("GC", { conf: { ...conf, [VALID_ATTACHMENTS]: list } });
  requireSuccess(answer);
  requireSilence(answer);
}

export const collecting: readonly SpecDemand[] = [
  {
    ...gc,
    name: "gc-empty-list",
    sentence: "GC with an empty list of valid attachments succeeds, and prints nothing",
    check(trial) {
      trial.attachment("c1").add();
      collect(trial, []);
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
        collect(trial, [], conf);
      }),
  },
  {
    ...gc,
    name: "gc-keeps-valid",
    sentence: "GC leaves the attachments of the list alone: CHECK succeeds afterwards",
    check(trial) {
      const valid = (trial.subject.attachesOnce ? ["c1"] : ["c1", "c2"]).map((name) => trial.attachment(name));
      for (const one of valid) one.add();
      collect(trial, valid);
      for (const one of valid) one.check();
    },
  },
  {
    name: "status-succeeds",
    sentence: "STATUS of a network that could be attached to succeeds, and prints nothing",
    section: "Section 2, STATUS",
    strength: "must",
    since: "1.1.0",
    kinds: everyKind,
    check(trial) {
      const answer = trial.call("STATUS");
      requireSuccess(answer);
      requireSilence(answer);
    },
  },
  {
    name: "status-not-ready",
    sentence: "STATUS is an error when ADD could not work: the IPAM plugin of the configuration is not there",
    section: "Section 2, STATUS",
    strength: "must",
    since: "1.1.0",
    kinds: ["main"],
    unless: whyNoPool,
    check(trial) {
      requireError(trial.call("STATUS", { conf: { ipam: { type: "no-such-ipam" } } }));
    },
  },
];
