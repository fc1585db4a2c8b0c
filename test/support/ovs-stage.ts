/** A machine with Open vSwitch, and attachments whose plugins reach its database through a proxy. */
import { leftSince, quietMoment } from "./leftovers.ts";
import { type Container, type Machine, openMachine } from "./machine.ts";
import { type Network, network } from "./network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "./open-vswitch.ts";
import { openProxy, type OvsdbProxy } from "./ovsdb-proxy.ts";
import type { Answer } from "./plugins.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };

/** Files of host-local that stay when nobody is attached to a network. */
export const STAYS = /file \/var\/lib\/cni\/networks\/[^/]+\/(last_reserved_ip|lock|\.patchbay)/;

export interface OvsAttachment extends AsyncDisposable {
  container: Container;
  net: Network;
  proxy: OvsdbProxy;
  /** All that there is of it: in the kernel, in the database and on disk. */
  left(): Promise<string[]>;
}

export interface OvsStage extends AsyncDisposable {
  machine: Machine;
  ovs: OpenVswitch;
  /** A container and a network of its own, so that many run at once. */
  attachment(conf?: Record<string, unknown>): Promise<OvsAttachment>;
  /** Does the work after an attachment came and went. Returns what is left of it afterwards. */
  leftOf(work: () => Promise<void>): Promise<string[]>;
}

export async function openOvsStage(): Promise<OvsStage> {
  const machine = await openMachine(), ovs = await startOpenVswitch(machine);
  await ovs.addBridge("ovs0");
  let count = 0;
  const attachment: OvsStage["attachment"] = async (conf = {}) => {
    const number = ++count, name = `net${number}`, container = await machine.container(`c${number}`);
    const proxy = await openProxy(machine, `/run/proxy${number}.sock`, ovs.socket);
    const own = { name, socket_file: proxy.socketFile };
    const net = network(machine, { type: "ovs", bridge: "ovs0", ipam, ...own, ...PATIENT, ...conf });
    return {
      container,
      net,
      proxy,
      left: async () => await partsOf(machine, name, container, ovs.answers),
      async [Symbol.asyncDispose]() {
        await proxy[Symbol.asyncDispose]();
        await machine.removeContainer(container);
      },
    };
  };
  return {
    machine,
    ovs,
    attachment,
    async leftOf(work) {
      {
        await using first = await attachment();
        await first.net.add(first.container);
        await first.net.del(first.container);
      }
      const moment = await quietMoment(machine);
      await work();
      return await leftSince(moment, machine, STAYS);
    },
    [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
  };
}

/** Rows are missing while the database cannot be asked. */
async function partsOf(
  machine: Machine,
  name: string,
  { name: netns }: Container,
  hasRows: boolean,
): Promise<string[]> {
  const parts = await machine.run([
    "sh",
    "-c",
    `
    ! ${hasRows} || ovs-vsctl --no-wait --bare --columns=name find Port external_ids:patchbay-network=${name} |
      sed '/^$/d; s/.*/row/'
    ip -n ${netns} -o link show 2>/dev/null | sed -n 's/^[0-9]*: \\([^:@]*\\)[:@].*/link \\1/p' | grep -v 'link lo$'
    nft list map inet patchbay_ovs links 2>/dev/null | grep -o 'net: ${name}"' | sed 's/.*/rule/'
    [ ! -d /run/patchbay/${name} ] || find /run/patchbay/${name} -type f | sed 's/.*/ledger/'
    ls /var/lib/cni/networks/${name} 2>/dev/null | grep -E '^(10[.]|fd20)' | sed 's/.*/lease/'`,
  ]);
  return [...new Set(parts.stdout.split("\n").filter(Boolean))];
}

/** Whether a call has failed, and says why, and what to do. */
export function isExplained({ code, json }: Answer): boolean {
  const text = `${json?.msg}; ${json?.details}`;
  const cause =
    /the database of Open vSwitch (at|cannot|refuses)|Open vSwitch has not added port|failed to find bridge/;
  const step = /look at the log|start Open vSwitch|has to be the database|is ovs-vswitchd running|ovs-vsctl add-br/;
  return code === 1 && cause.test(text) && step.test(text);
}
