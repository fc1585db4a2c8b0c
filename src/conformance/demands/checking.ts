/** CHECK. */
import { requireError } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { everyKind } from "../subjects.ts";
import { whyNoPool } from "./pool.ts";

const CHECK = "Section 2, CHECK";

export const checking: readonly SpecDemand[] = [
  {
    name: "check-after-add",
    sentence: "CHECK right after ADD succeeds",
    section: CHECK,
    strength: "must",
    since: "0.4.0",
    kinds: everyKind,
    check(trial) {
      const one = trial.attachment("c1");
      one.add();
      one.check();
    },
  },
  {
    name: "check-interface-gone",
    sentence: "CHECK is an error when an interface that the plugin made is gone",
    section: CHECK,
    strength: "should",
    since: "0.4.0",
    kinds: ["main"],
    unless: ({ subject }) => subject.ifName === "lo" ? "lo cannot be removed" : undefined,
    check(trial) {
      const one = trial.attachment("c1");
      one.add();
      trial.host.removeLink(one.container, one.ifName);
      requireError(one.call("CHECK"));
    },
  },
  {
    name: "check-address-gone",
    sentence: "CHECK is an error when an address that the plugin set is gone",
    section: CHECK,
    strength: "should",
    since: "0.4.0",
    kinds: ["main"],
    unless: whyNoPool,
    check(trial) {
      const one = trial.attachment("c1");
      one.add();
      trial.host.removeAddresses(one.container, one.ifName);
      requireError(one.call("CHECK"));
    },
  },
  {
    name: "check-needs-prevresult",
    sentence: "CHECK compares with prevResult: without it, what made an interface cannot succeed",
    section: CHECK,
    strength: "implied",
    since: "0.4.0",
    kinds: ["main"],
    unless: ({ subject }) => subject.ifName === "lo" ? "lo is there without ADD" : undefined,
    check(trial) {
      const one = trial.attachment("c1");
      one.add();
      requireError(one.call("CHECK", { conf: { prevResult: undefined } }));
    },
  },
];
