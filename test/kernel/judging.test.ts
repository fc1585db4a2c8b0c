/**
 * Who judges a configuration: what ADD refuses, CHECK, STATUS and plan refuse too, in the same words; DEL and GC refuse
 * nothing, and nothing is left.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";

const ipam = { type: "static", addresses: [{ address: "10.1.0.2/24" }] };
const dummies = { interfaces: [{ name: "eth0", sandbox: "x" }], ips: [{ address: "10.1.0.2/24" }] };

/** `call`: what is wrong comes with the call, so STATUS cannot know. */
const refused: { conf: Record<string, unknown> & { type: string }; message: string; call?: true }[] = [
  {
    conf: { type: "bridge", hairpinMode: true, promiscMode: true },
    message: "cannot set hairpin mode and promiscuous",
  },
  { conf: { type: "bridge", vlanTrunk: [{ minID: 5 }] }, message: "minID and maxID should be configured" },
  { conf: { type: "bridge", runtimeConfig: { mac: "hello" } }, message: "address hello: invalid MAC", call: true },
  { conf: { type: "ptp" }, message: "no plugin name provided" },
  { conf: { type: "dummy" }, message: "dummy interface requires an IPAM configuration" },
  { conf: { type: "vlan", master: "m0", vlanId: 9999, ipam }, message: "invalid VLAN ID 9999" },
  { conf: { type: "macvlan", mode: "none", ipam }, message: 'unknown macvlan mode: "none"' },
  { conf: { type: "ipvlan", mode: "none", ipam }, message: 'unknown ipvlan mode: "none"' },
  { conf: { type: "tap", runtimeConfig: { mac: "hello" } }, message: "invalid args hello for MAC addr", call: true },
  { conf: { type: "host-device", ipam }, message: 'specify either "device", "hwaddr"', call: true },
  { conf: { type: "portmap", backend: "none" }, message: 'unrecognized backend "none"' },
  { conf: { type: "firewall", ingressPolicy: "none" }, message: "none" },
  { conf: { type: "sbr", table: 0 }, message: '"table": 0 is not a routing table' },
  { conf: { type: "vrf", vrfname: "" }, message: "expected to have a valid vrf name" },
  {
    conf: { type: "bandwidth", shapedSubnets: ["10.0.0.0/8"], unshapedSubnets: ["10.1.0.0/16"] },
    message: "cannot be both specified",
  },
  { conf: { type: "tuning", mac: "hello" }, message: "invalid args hello for MAC addr" },
  { conf: { type: "flannel", delegate: { type: "flannel" } }, message: "'delegate' cannot be flannel itself" },
];

for (const { conf, message, call } of refused) {
  test(`${conf.type}: ${message}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container();
    const prevResult = { cniVersion: "1.0.0", ...dummies };
    const net = network(machine, { ...conf, cniVersion: "1.1.0" }, undefined, { own: () => ({ prevResult }) });
    const moment = await quietMoment(machine);
    const add = await net.call("ADD", container);
    expect([add.code, add.json.msg]).toEqual([1, expect.stringContaining(message)]);
    const check = await net.call("CHECK", container, { conf: { prevResult } });
    expect([check.code, check.json.msg]).toEqual([1, add.json.msg]);
    if (!call) {
      const status = await net.call("STATUS", undefined);
      expect([status.code, status.json.msg]).toEqual([1, add.json.msg]);
    }
    await net.del(container);
    await net.gc([]);
    expect(await leftSince(moment, machine)).toEqual([]);
  });
}

test("plan lists what is refused as an obstacle, and exits with status 1", async () => {
  await using machine = await openMachine();
  const list = {
    cniVersion: "1.1.0",
    name: "net",
    plugins: [{ type: "bridge", hairpinMode: true, promiscMode: true }],
  };
  await machine.sh(`mkdir -p /run/net.d; echo '${JSON.stringify(list)}' > /run/net.d/net.conflist`);
  const { code, stderr } = await machine.run([PATCHBAY, "plan", "--config-dir", "/run/net.d", "net"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("'add' would fail: cannot set hairpin mode")]);
});
