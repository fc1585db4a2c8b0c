/** `patchbay network remove` names the chains of iptables that stay, because all networks share them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { commandsOn } from "../../support/commands.ts";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { type Machine, openMachine } from "../../support/machine.ts";

let machine: Machine;
beforeEach(async () => {
  machine = await openMachine();
  await machine.sh(`mkdir -p ${CONFIGS}`);
  await machine.container("c1");
});
afterEach(() => machine[Symbol.asyncDispose]());
const { must } = commandsOn(() => machine, () => CONFIGS);

const ipam = { type: "host-local", subnet: "10.9.0.0/24" };
const bridge = { type: "bridge", bridge: "br0" };
const portmap = { type: "portmap", capabilities: { portMappings: true } };
const stay = (chain: string) => `chain ${chain} of iptables stays: all networks share it\n`;
const portmaps = { iptables: { ...portmap, backend: "iptables" }, nftables: { ...portmap, backend: "nftables" } };
const firewalls = {
  iptables: { type: "firewall", backend: "iptables", iptablesAdminChainName: "SITE" },
  nftables: { type: "firewall", backend: "nftables" },
};
const ofPorts = ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-SETMARK", "CNI-HOSTPORT-MASQ"];
const cases: [what: string, plugins: Record<string, unknown>[], chains: string[]][] = [
  ["that its plugins make", [portmaps.iptables, firewalls.iptables], ["CNI-FORWARD", "SITE", ...ofPorts]],
  ["that need no masquerade", [{ ...portmaps.iptables, snat: false }], ["CNI-HOSTPORT-DNAT"]],
  ["that only other networks have made", [portmaps.nftables, firewalls.nftables], []],
];
test.each(cases)("chains %s: those that are there are named", async (_, plugins, chains) => {
  await writeNetwork(machine, "other", [{ type: "ptp", ipam }, portmaps.iptables, firewalls.iptables]);
  await writeNetwork(machine, "net", [bridge, ...plugins]);
  expect(await must("network", "remove", "net")).toBe("nothing is left of it\n");
  await must("add", "other", "c1", "--ports", "8080:80");
  for (const [more, verb] of [["--dry-run", "would remove"], [undefined, "removed"]]) {
    await must("add", "net", "c1", "-i", "eth1");
    await must("del", "net", "c1", "-i", "eth1");
    expect(await must("network", "remove", "net", ...more === undefined ? [] : [more])).toBe(
      `${verb} bridge br0\n${chains.map(stay).join("")}`,
    );
  }
  expect(await machine.sh("iptables -S; iptables -t nat -S")).toContain("-N SITE\n");
});
