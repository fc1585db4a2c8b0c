/**
 * The plugins that the sweeps put through faults, one entry each: kill-sweep.test.ts kills them at every system call,
 * errno-sweep.test.ts lets each call fail once.
 */
import { lacks } from "../support/kernel-features.ts";
import type { Container, Machine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";

export interface Subject {
  /** In the names of tests. */
  name: string;
  conf: Record<string, unknown> & { type: string };
  /** What differs from container to container; for a plugin that is chained, prevResult of the ones before it. */
  own?: (container: Container) => Record<string, unknown>;
  /** What those before it made, as a shell script on the machine. */
  prepare?: (container: Container) => string;
  /** Beside the CNI_ variables. */
  env?: Record<string, string>;
}

// Three addresses a family: one for each container of the kill sweep. A lost one is missed at once.
const ipam = {
  type: "host-local",
  ranges: [
    [{ subnet: "10.20.0.0/24", rangeStart: "10.20.0.2", rangeEnd: "10.20.0.4" }],
    [{ subnet: "fd20::/64", rangeStart: "fd20::2", rangeEnd: "fd20::4" }],
  ],
};
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };

export const subjects: Subject[] = [
  { name: "host-local", conf: { type: "host-local", ipam } },
  {
    name: "bridge",
    conf: { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam },
  },
];

/** A subject on a machine. */
export interface Staged {
  net: Network;
  /** A new container, as the plugin finds it. */
  container(name: string): Promise<Container>;
  /** The call that `net` makes for an attachment it has no result of. */
  call(command: string, container: Container): Call;
}

export function stage({ conf, own = () => ({}), prepare, env }: Subject, machine: Machine): Staged {
  return {
    net: network(machine, conf, patchbayPlugins(), { own, env }),
    async container(name) {
      const container = await machine.container(name);
      if (prepare !== undefined) await machine.sh(prepare(container));
      return container;
    },
    call(command, container) {
      const whole = { cniVersion: "1.1.0", name: "net", ...conf, ...own(container) };
      return { plugin: conf.type, command, container, conf: whole, env };
    },
  };
}
