/**
 * macvlan, ipvlan and vlan check their master and their configuration before they ask the kernel for a link, so these
 * tests need no kernel that has such links.
 */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { network } from "../support/network.ts";
import { openWire, wireIpam as ipam } from "../support/wire.ts";

interface Row {
  conf: Record<string, unknown>;
  says: RegExp;
  code?: number;
}

const noMaster = { master: undefined };
const anywhere: Row[] = [
  { conf: { master: "gone" }, says: /^failed to lookup master "gone": Link not found .*host/ },
  { conf: { linkInContainer: true }, says: /^failed to lookup master "m0": Link not found .*container/ },
  { conf: { master: 5 }, says: /master.*5/ },
  { conf: { mtu: "1500" }, says: /mtu.*1500/ },
  { conf: { linkInContainer: "yes" }, says: /linkInContainer.*yes/ },
];
const ofMtu: Row[] = [
  { conf: { mtu: 1501 }, says: /^invalid MTU 1501, must be \[0, master MTU\(1500\)\]/ },
  { conf: { mtu: -1 }, says: /^invalid MTU -1, must be \[0, master MTU\(1500\)\]/ },
];
const byDefaultRoute = { conf: noMaster, says: /^no default route interface found/ };
const chained = (interfaces: unknown[]) => ({
  conf: { ...noMaster, prevResult: { cniVersion: "1.1.0", interfaces } },
  says: /^chained master failure\. PrevResult lacks a single named interface/,
});

const rows: Record<string, Row[]> = {
  macvlan: [
    ...anywhere,
    ...ofMtu,
    byDefaultRoute,
    { conf: { mode: "bridged" }, says: /^unknown macvlan mode: "bridged" .*mode/, code: 2 },
    { conf: { mode: "constructor" }, says: /^unknown macvlan mode: "constructor"/, code: 2 },
    { conf: { mac: "0g:00:00:00:00:01" }, says: /^invalid args 0g:00:00:00:00:01 for MAC addr/ },
    { conf: { runtimeConfig: { mac: "none" } }, says: /^invalid args none for MAC addr/ },
    { conf: { bcqueuelen: -1 }, says: /bcqueuelen.*-1/ },
  ],
  ipvlan: [
    ...anywhere,
    byDefaultRoute,
    chained([]),
    chained([{ name: "m0" }, { name: "eth0", sandbox: "/run/netns/c1" }]),
    { ...chained([{ name: "gone" }]), says: /^failed to lookup master "gone": Link not found/ },
    { conf: { mode: "l4" }, says: /^unknown ipvlan mode: "l4" .*mode/, code: 2 },
    { conf: { mtu: 4294968696 }, says: /mtu.*4294968696 is not an MTU/ },
    { conf: { ipam: {} }, says: /^no plugin name provided .*ipam/ },
  ],
  vlan: [
    ...anywhere,
    ...ofMtu,
    { conf: noMaster, says: /^"master" field is required\. It specifies the host interface name/ },
    { conf: { vlanId: 4095 }, says: /^invalid VLAN ID 4095 \(must be between 0 and 4095 inclusive\) .*vlanId/ },
    { conf: { vlanId: -1 }, says: /^invalid VLAN ID -1/ },
    { conf: { master: "down0", ipam: {} }, says: /^master "down0" is down/ },
  ],
};

const features: Record<string, Feature> = { macvlan: "macvlan links", ipvlan: "ipvlan links", vlan: "VLAN links" };

for (const [type, refused] of Object.entries(rows)) {
  test(`${type} refuses what cannot be, and changes nothing`, async () => {
    await using wire = await openWire();
    const { machine } = wire;
    const container = await machine.container("c1");
    await machine.sh("ip link add down0 type veth peer name down1");
    const net = network(machine, { type, master: "m0", ipam });
    const before = await quietMoment(machine);
    const wrong: string[] = [];
    for (const { conf, says, code = 7 } of refused) {
      const { json, stdout } = await net.call("ADD", container, { conf });
      if (json?.code !== code || !says.test(`${json.msg} ${json.details ?? ""}`)) {
        wrong.push(`${JSON.stringify(conf)}: ${stdout}`);
      }
      // What ADD refuses may have been accepted once: DEL does not judge it.
      const deleted = await net.call("DEL", container, { conf });
      if (deleted.code !== 0) wrong.push(`DEL ${JSON.stringify(conf)}: ${deleted.stdout}`);
    }
    expect(wrong).toEqual([]);
    expect(await leftSince(before, machine)).toEqual([]);
  });

  test(`STATUS of ${type} says whether ADD could work`, async () => {
    await using wire = await openWire();
    const net = network(wire.machine, { type, master: "m0", ipam });
    await wire.machine.sh("ip link add down0 type veth peer name down1");
    const status = async (conf: Record<string, unknown>) => {
      const { stdout } = await net.call("STATUS", undefined, { conf });
      return stdout === "" ? "" : JSON.parse(stdout);
    };
    if (lacks(features[type])) return;
    expect(await status({})).toBe("");
    expect(await status({ linkInContainer: true, master: "inside" })).toBe("");
    expect(await status({ master: "gone" })).toMatchObject({
      code: 50,
      msg: `failed to lookup master "gone": Link not found`,
    });
    const whenDown = type === "vlan" ? { code: 50, msg: 'master "down0" is down' } : "";
    expect(await status({ master: "down0" })).toEqual(whenDown === "" ? "" : expect.objectContaining(whenDown));
    expect(await status({ ipam: { type: "nothing" } })).toMatchObject({ msg: expect.stringContaining("nothing") });
  });
}
