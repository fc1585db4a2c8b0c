/**
 * Networks of bridge that share one bridge and are separated by VLANs: what the kernel holds, where packets go, and
 * what stays after the containers. test/kernel/bridge-options.test.ts has the options one by one.
 */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { GO_PLUGINS, patchbayPlugins } from "../../support/plugins.ts";
import { ping } from "../../support/traffic.ts";

const vlanTest = test.skipIf(lacks("bridge VLAN filtering"));

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const bridge = { type: "bridge", bridge: "br0" };
const tagged = { ...bridge, vlan: 100, isGateway: true, ipam: v4 };
const PVID = ["PVID", "Egress Untagged"];
interface Vlan {
  vlan: number;
  vlanEnd?: number;
  flags?: string[];
}

async function vlansOf(machine: Machine, ifName: string): Promise<Vlan[]> {
  const ports: { ifname: string; vlans: Vlan[] }[] = JSON.parse(await machine.sh("bridge -j vlan show"));
  return ports.find((port) => port.ifname === ifName)?.vlans ?? [];
}

async function containers(machine: Machine, count: number): Promise<Container[]> {
  const made = [];
  while (made.length < count) made.push(await machine.container());
  return made;
}

vlanTest("a trunk carries its VLANs tagged, VLAN 1 untagged, and no other", async () => {
  await using machine = await openMachine();
  const [trunk, ten, twenty, plain] = await containers(machine, 4) as [Container, Container, Container, Container];
  const { interfaces } = await network(machine, {
    ...bridge,
    name: "trunk",
    vlanTrunk: [{ minID: 10, maxID: 12 }, { id: 4094 }],
    ipam: { type: "static", addresses: [{ address: "10.1.0.1/24" }] },
  }).add(trunk);
  expect(await vlansOf(machine, interfaces[1].name)).toEqual([
    { vlan: 1, flags: PVID },
    ...[10, 11, 12, 4094].map((vlan) => ({ vlan })),
  ]);
  const attach = (container: Container, vlan: number, address: string) =>
    network(machine, { ...bridge, vlan, ipam: { type: "static", addresses: [{ address }] } }).add(container);
  await attach(ten, 10, "10.10.0.2/24");
  await attach(twenty, 20, "10.20.0.2/24");
  await attach(plain, 1, "10.1.0.2/24");
  await machine.sh(
    `for vlan in 10 20; do
      ip link add link eth0 name eth0.$vlan type vlan id $vlan
      ip address add 10.$vlan.0.1/24 dev eth0.$vlan; ip link set eth0.$vlan up
    done`,
    { in: trunk },
  );
  expect(await ping(machine, trunk, "10.10.0.2")).toBe(true);
  expect(await ping(machine, trunk, "10.20.0.2")).toBe(false);
  expect(await ping(machine, trunk, "10.1.0.2")).toBe(true);
});

vlanTest("each VLAN has a gateway of its own, by IPv4 and IPv6, that outlives its containers", async () => {
  await using machine = await openMachine();
  const [one, other, blue] = await containers(machine, 3) as [Container, Container, Container];
  const red = network(machine, { ...tagged, mtu: 1400, ipam: dual });
  const ipam = { type: "host-local", subnet: "10.30.0.0/24" };
  const second = network(machine, { ...tagged, name: "blue", vlan: 200, isDefaultGateway: true, ipam });

  const { interfaces } = await red.add(one);
  expect(interfaces.map(({ name }: { name: string }) => name)).toEqual([
    "br0",
    expect.any(String),
    "eth0",
    "br0.100",
  ]);
  const [gateway] = JSON.parse(await machine.sh("ip -j -d link show br0.100"));
  expect(gateway).toMatchObject({ mtu: 1400, address: interfaces[3].mac, linkinfo: { info_kind: "veth" } });
  expect(gateway.flags).toContain("UP");
  expect(await vlansOf(machine, gateway.link)).toEqual([{ vlan: 100, flags: PVID }]);

  const again = await red.add(other);
  expect(again.interfaces[3]).toEqual(interfaces[3]);
  await second.add(blue);
  for (const address of ["10.20.0.1", "fd20::1", "10.20.0.3", "fd20::3"]) {
    expect(`${address} ${await ping(machine, one, address)}`).toBe(`${address} true`);
  }
  expect(await ping(machine, blue, "10.30.0.1")).toBe(true);

  // Behind a gateway there is a router, so apart they are only on layer 2.
  await machine.sh("sysctl -qw net.ipv4.ip_forward=0");
  await machine.sh("ip address add 10.20.0.99/24 dev eth0", { in: blue });
  expect(await ping(machine, blue, "10.20.0.2")).toBe(false);
  expect(await ping(machine, blue, "10.20.0.1")).toBe(false);

  await red.del(one);
  expect(await ping(machine, other, "10.20.0.1")).toBe(true);
  await red.del(other);
  expect(await machine.sh("ip -br address show br0.100")).toContain("10.20.0.1/24");
});

vlanTest("containers that are first at the same time share one gateway", async () => {
  await using machine = await openMachine();
  const all = await containers(machine, 6);
  const net = network(machine, tagged);
  const results = await Promise.all(all.map((container) => net.add(container)));
  expect(new Set(results.map(({ interfaces }) => interfaces[3].mac)).size).toBe(1);
  const answered = await Promise.all(all.map((container) => ping(machine, container, "10.20.0.1")));
  expect(answered).toEqual(all.map(() => true));
  // br0, its 6 ports, the gateway's port, the gateway, the loopback.
  expect(JSON.parse(await machine.sh("ip -j link show"))).toHaveLength(10);
});

vlanTest("a gateway that a killed ADD left half made is finished by the next", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh(
    "ip link add br0 type bridge vlan_filtering 1; ip link add vethcafe0001 master br0 up type veth peer name br0.100",
  );
  await network(machine, tagged).add(container);
  expect(await ping(machine, container, "10.20.0.1")).toBe(true);
  expect(await vlansOf(machine, "vethcafe0001")).toEqual([{ vlan: 100, flags: PVID }]);
});

vlanTest("a bridge whose name leaves no room for the VLAN is refused, and nothing stays", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const before = await quietMoment(machine);
  const ipam = { type: "static", addresses: [{ address: "10.20.0.2/24" }] };
  const net = network(machine, { ...tagged, bridge: "averylongname", vlan: 1000, ipam });
  const answer = await net.call("ADD", container);
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toContain("averylongname.1000");
  expect(await leftSince(before, machine)).toEqual([]);
});

/** An IPAM plugin that says when it is asked, and fails when it is told to. */
const failingIpam = `
mkdir /run/plugins; cat >/run/plugins/failing <<'END'
#!/bin/sh
touch /run/asked; until [ -e /run/fail ]; do sleep 0.1; done
echo '{"cniVersion":"1.1.0","code":100,"msg":"no address left"}'; exit 1
END
chmod +x /run/plugins/failing`;

vlanTest.each([{ meanwhile: "nobody" }, { meanwhile: "another" }])(
  "an ADD that fails takes back the gateway it made, unless it is in use: $meanwhile came meanwhile",
  async ({ meanwhile }) => {
    await using machine = await openMachine();
    const [fails, other] = await containers(machine, 2) as [Container, Container];
    await machine.sh(failingIpam);
    const before = await quietMoment(machine);
    const env = { CNI_PATH: `${patchbayPlugins()}:/run/plugins` };
    const failing = network(machine, { ...tagged, ipam: { type: "failing" } }).call("ADD", fails, { env });
    await machine.sh("until [ -e /run/asked ]; do sleep 0.1; done; test -e /sys/class/net/br0.100");
    if (meanwhile === "another") await network(machine, tagged).add(other);
    await machine.sh("touch /run/fail");
    expect((await failing).json.msg).toBe("no address left");
    if (meanwhile === "another") expect(await ping(machine, other, "10.20.0.1")).toBe(true);
    else expect(await leftSince(before, machine, /file \/run\/(asked|fail)$/)).toEqual([]);
  },
);

vlanTest("isolated ports of a VLAN reach its gateway, not one another", async () => {
  await using machine = await openMachine();
  const [one, other] = await containers(machine, 2) as [Container, Container];
  const net = network(machine, { ...tagged, portIsolation: true });
  await net.add(one);
  await net.add(other);
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
  expect(await ping(machine, one, "10.20.0.3")).toBe(false);
});

vlanTest("macspoofchk guards a VLAN: the kernel's rules, frames dropped, and nothing left", async () => {
  await using machine = await openMachine();
  const [first, container] = await containers(machine, 2) as [Container, Container];
  const net = network(machine, { ...tagged, macspoofchk: true });
  await net.add(first);
  await net.del(first);
  const before = await quietMoment(machine);

  const { interfaces } = await net.add(container);
  const ruleset = await machine.sh("nft list ruleset bridge");
  for (const part of [interfaces[1].name, interfaces[2].mac]) expect(ruleset).toContain(part);
  expect(await ping(machine, container, "10.20.0.1")).toBe(true);
  const setMac = (mac: string) => machine.sh(`ip link set eth0 address ${mac}`, { in: container });
  await setMac("02:00:00:00:00:66");
  expect(await ping(machine, container, "10.20.0.1")).toBe(false);
  await setMac(interfaces[2].mac);
  expect(await ping(machine, container, "10.20.0.1")).toBe(true);
  await net.check(container);
  await net.del(container);
  expect(await leftSince(before, machine)).toEqual([]);
});

vlanTest("GC takes what is not valid any more, and leaves the rest of the VLAN alone", async () => {
  await using machine = await openMachine();
  const [stays, goes] = await containers(machine, 2) as [Container, Container];
  const net = network(machine, { ...tagged, macspoofchk: true, ipMasq: true });
  await net.add(stays);
  const before = await quietMoment(machine);
  await net.add(goes);
  await net.gc([stays]);
  expect(await leftSince(before, machine)).toEqual([]);
  await net.check(stays);
  expect(await ping(machine, stays, "10.20.0.1")).toBe(true);
});

vlanTest.each([{ by: "the Go plugins" }, { by: "us, and the ledger is lost" }])(
  "CHECK and DEL know a VLAN attachment made by $by",
  async ({ by }) => {
    await using machine = await openMachine();
    const [first, container] = await containers(machine, 2) as [Container, Container];
    const conf = { ...tagged, cniVersion: "1.0.0", macspoofchk: true, ipMasq: true };
    const ours = network(machine, conf);
    const maker = by.startsWith("us") ? ours : network(machine, conf, GO_PLUGINS);
    await maker.add(first);
    await maker.del(first);
    const before = await quietMoment(machine);
    const prevResult = await maker.add(container);
    await machine.sh("rm -rf /run/patchbay");
    await ours.check(container, { conf: { prevResult } });
    await ours.del(container, { conf: { prevResult } });
    expect(await leftSince(before, machine)).toEqual([]);
  },
);

vlanTest("on a bridge that was there before and filters nothing, ADD warns, and CHECK fails", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip link add br0 type bridge; ip link set br0 up");
  const net = network(machine, { ...tagged, isGateway: false });
  const added = await net.call("ADD", container);
  expect(added).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("ip link set br0 type bridge vlan_filtering 1"),
  });
  const checked = await net.call("CHECK", container);
  expect(checked.json).toMatchObject({ msg: expect.stringContaining("bridge br0 does not filter VLANs") });
  await machine.sh("ip link set br0 type bridge vlan_filtering 1");
  await net.check(container);
  const other = await machine.container();
  expect(await net.call("ADD", other)).toMatchObject({ code: 0, stderr: "" });
});
