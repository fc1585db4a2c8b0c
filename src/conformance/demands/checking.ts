/** CHECK. */
import { requireError } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { everyKind } from "../subjects.ts";
import { whyNoPool } from "./pool.ts";

const ofMain = { section: "Section 2, CHECK", strength: "should", since: "0.4.0", kinds: ["main"] } as const;

export const checking: readonly SpecDemand[] = [
  {
    ...ofMain,
    name: "check-after-add",
    sentence: "CHECK right after ADD succeeds",
    strength: "must",
    kinds: everyKind,
    check(trial) {
      const one = trial.attached("c1");
      one.check();
    },
  },
  {
    ...ofMain,
    name: "check-interface-gone",
    sentence: "CHECK is an error when an interface that the plugin made is gone",
    unless: ({ subject }) => subject.ifName === "lo" ? "lo cannot be removed" : undefined,
    check(trial) {
      const one = trial.attached("c1");
      trial.host.removeLink(one.container, one.ifName);
      requireError(one.call("CHECK"));
    },
  },
  {
    ...ofMain,
    name: "check-address-gone",
    sentence: "CHECK is an error when an address that the plugin set is gone",
    unless: whyNoPool,
    check(trial) {
      const one = trial.attached("c1");
      trial.host.removeAddresses(one.container, one.ifName);
      requireError(one.call("CHECK"));
    },
  },
  {
    ...ofMain,
    name: "check-needs-prevresult",
    sentence: "CHECK compares with prevResult: without it, what made an interface cannot succeed",
    strength: "implied",
    unless: ({ subject }) => subject.ifName === "lo" ? "lo is there without ADD" : undefined,
    check(trial) {
      const one = trial.attached("c1");
      requireError(one.call("CHECK", { conf: { prevResult: undefined } }));
    },
  },
];
