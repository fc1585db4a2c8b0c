/**
 * One DEL calls another program's plugin once: an IPAM plugin, or the plugin that flannel delegates to. A foreign plugin
 * may refuse the second of two equal DELs, and then no later DEL would succeed.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { patchbayPlugins } from "../support/plugins.ts";
import { scriptPlugins } from "../support/script-plugins.ts";

const ipam = { type: "foreign" };
const leased = { cniVersion: "0.4.0", ips: [{ version: "4", address: "10.9.0.2/24", gateway: "10.9.0.1" }] };

const plugins: Record<string, Record<string, unknown>> = {
  bridge: { ipam },
  ptp: { ipam },
  macvlan: { ipam, master: "m0" },
  "host-device": { ipam, device: "m1" },
  tap: { ipam },
  flannel: { delegate: { type: "foreign" } },
};

/** Why DEL cannot rely on the ledger alone. */
const doubts: Record<string, { cniVersion: string; change?: Record<string, unknown>; twice?: true }> = {
  "no prevResult in this version": { cniVersion: "0.3.1", change: { prevResult: undefined } },
  "a lost result cache": { cniVersion: "1.0.0", change: { prevResult: undefined } },
  "a result that lacks the addresses": {
    cniVersion: "0.4.0",
    change: { prevResult: { cniVersion: "0.4.0", interfaces: [], ips: [] } },
  },
  "ADD called twice": { cniVersion: "0.3.1", change: { prevResult: undefined }, twice: true },
};

const devices = "ip link add m0 type veth peer name m0p; ip link set m0 up; ip link set m0p up; " +
  "ip link show m1 >/dev/null 2>&1 || ip link add m1 type veth peer name m1p";
const SUBNET_ENV =
  "FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n";

for (const [type, conf] of Object.entries(plugins)) {
  test.each(Object.entries(doubts))(`${type}: %s`, async (_, { cniVersion, change, twice }) => {
    using scripts = scriptPlugins();
    scripts.plugin("foreign", { ADD: { stdout: leased } });
    await using machine = await openMachine();
    await machine.sh(devices);
    await machine.run(["sh", "-c", "mkdir -p /run/flannel; cat > /run/flannel/subnet.env"], { stdin: SUBNET_ENV });
    const container = await machine.container("c1");
    const net = network(machine, { type, cniVersion, ...conf });
    const use = { env: { CNI_PATH: `${scripts.directory}/bin:${patchbayPlugins()}` } };
    // Bridges stay after the first attachment.
    await net.add(container, use);
    await net.del(container, use);
    const moment = await quietMoment(machine), before = scripts.calls().length;

    await net.add(container, use);
    if (twice) await net.call("ADD", container, use);
    const added = scripts.calls().length;
    await net.del(container, { ...use, conf: change });
    expect(scripts.calls().slice(added)).toEqual(["DEL foreign"]);
    expect(added).toBeGreaterThan(before);
    expect(await leftSince(moment, machine)).toEqual([]);
  });
}

test("a lease that was made with another configuration is given back with it, and so is today's", async () => {
  using scripts = scriptPlugins();
  scripts.plugin("foreign", { ADD: { stdout: leased } });
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "bridge", cniVersion: "0.3.1", ipam });
  const use = { env: { CNI_PATH: `${scripts.directory}/bin` } };
  const prevResult = undefined;
  for (
    const change of [
      { conf: { prevResult, ipam: { ...ipam, pool: "b" } } },
      { conf: { prevResult }, args: "IgnoreUnknown=1;POOL=b" },
    ]
  ) {
    await net.add(container, use);
    const added = scripts.calls().length;
    await net.del(container, { ...use, ...change });
    expect(scripts.calls().slice(added)).toEqual(["DEL foreign", "DEL foreign"]);
  }
});
