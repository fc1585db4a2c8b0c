/** DEL: it succeeds whatever is missing, and leaves nothing. */
import { requireError } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { linesInContainer, linesOnHost, requireNothingLeftInside, requireNothingLeftOnHost } from "../leftovers.ts";
import { everyKind } from "../subjects.ts";
import type { Trial } from "../trial.ts";
import { requireAddressBack, whyNoPool, whyNoSecondContainer } from "./pool.ts";

const DEL = "Section 2, DEL";
const should = { section: DEL, strength: "should", since: "0.1.0", kinds: everyKind } as const;

/** Makes an attachment and removes it: bridges and chains of rules then stay for the network's next attachment. */
function used(trial: Trial): void {
  trial.attached("first").del();
}

export const deleting: readonly SpecDemand[] = [
  {
    ...should,
    name: "del-succeeds",
    sentence: "DEL after ADD succeeds",
    check: (trial) => trial.attached("c1").del(),
  },
  {
    ...should,
    name: "del-clears-namespace",
    sentence: "DEL removes the interface, and undoes everything that ADD did in the namespace",
    check(trial) {
      const one = trial.attachment("c1"), before = linesInContainer(trial.host, one.container);
      one.add();
      one.del();
      requireNothingLeftInside(trial.host, one.container, before);
    },
  },
  {
    ...should,
    name: "del-clears-host",
    sentence: "DEL undoes everything that ADD did for the container on the host: links, routes, rules, files",
    check(trial) {
      used(trial);
      const one = trial.attachment("c1"), before = linesOnHost();
      one.add();
      one.del();
      requireNothingLeftOnHost(before);
    },
  },
  {
    ...should,
    name: "del-frees-addresses",
    sentence: "DEL gives addresses back: the next container gets the only one of a pool",
    kinds: ["main", "ipam"],
    unless: whyNoPool,
    check: (trial) => requireAddressBack(trial, (one, change) => one.del(change)),
  },
  {
    ...should,
    name: "del-after-failed-add",
    sentence: "After an ADD that failed, for want of an address, DEL succeeds, and nothing of the container is left",
    section: `${DEL}; Section 3, Lifecycle & Ordering`,
    kinds: ["main"],
    unless: whyNoSecondContainer,
    check(trial) {
      const conf = trial.subject.confOfOneAddress!;
      trial.attachment("c1").add({ conf });
      const late = trial.attachment("c2"),
        host = linesOnHost(),
        inside = linesInContainer(trial.host, late.container);
      requireError(late.call("ADD", { conf }));
      late.del({ conf });
      requireNothingLeftInside(trial.host, late.container, inside);
      requireNothingLeftOnHost(host);
    },
  },
  {
    ...should,
    name: "del-twice",
    sentence: "DEL succeeds again after a DEL",
    strength: "must",
    check(trial) {
      const one = trial.attached("c1");
      one.del();
      one.del({}, " (the second DEL)");
    },
  },
  {
    ...should,
    name: "del-never-added",
    sentence: "DEL of a container that was never added succeeds: what it would remove is missing",
    check: (trial) => trial.attachment("c1").del({ conf: { prevResult: undefined } }),
  },
  {
    ...should,
    name: "del-without-prevresult",
    sentence: "DEL without prevResult succeeds",
    check: (trial) => trial.attached("c1").del({ conf: { prevResult: undefined } }),
  },
  {
    ...should,
    name: "del-empty-netns",
    sentence: "DEL with an empty CNI_NETNS, or without it, succeeds: the namespace is gone",
    check(trial) {
      const one = trial.attached("c1");
      one.del({ env: { CNI_NETNS: "" } }, " (CNI_NETNS empty)");
      one.del({ env: { CNI_NETNS: undefined } }, " (CNI_NETNS not set)");
    },
  },
  {
    ...should,
    name: "del-empty-netns-frees-addresses",
    sentence: "DEL with an empty CNI_NETNS gives addresses back",
    kinds: ["main", "ipam"],
    unless: whyNoSecondContainer,
    check: (trial) =>
      requireAddressBack(trial, (one, change) => {
        trial.host.removeContainer(one.container);
        one.del({ ...change, env: { CNI_NETNS: "" } });
      }),
  },
  {
    ...should,
    name: "del-gone-netns",
    sentence: "DEL succeeds when the path CNI_NETNS is not there any more",
    check(trial) {
      const one = trial.attached("c1");
      trial.host.removeContainer(one.container);
      one.del();
    },
  },
  {
    ...should,
    name: "del-gone-netns-clears-host",
    sentence: "DEL removes what ADD did on the host also when the namespace is gone",
    check(trial) {
      used(trial);
      const one = trial.attachment("c1"), before = linesOnHost();
      one.add();
      trial.host.removeContainer(one.container);
      one.del();
      requireNothingLeftOnHost(before);
    },
  },
  {
    ...should,
    name: "del-stale-netns-path",
    sentence: "DEL succeeds when CNI_NETNS is the plain file that a namespace was mounted on: a reboot leaves it",
    section: `${DEL}; engines after a reboot`,
    strength: "engines",
    check(trial) {
      const one = trial.attached("c1");
      trial.host.removeContainer(one.container, { staysAsFile: true });
      one.del();
    },
  },
];
