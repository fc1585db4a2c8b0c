/** What guards 127.0.0.1 of the host on a link, beside whatever else filters there. */
import { expect, test } from "bun:test";
import { network } from "../support/network.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { killAt } from "../support/injection.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const GUARD = "pref 1 bpf chain 0 handle 0x7f00000";
const ipam = { type: "host-local", subnet: "10.88.0.0/24" };
const runtimeConfig = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };

/** A container behind a link of the host, of which portmap has not been told yet. */
async function attached(type: "ptp" | "bridge") {
  const machine = await openMachine(), container = await machine.container();
  const more = type === "bridge" ? { bridge: "br0", isGateway: true } : {};
  const prevResult = await network(machine, { type, ipam, ...more }).add(container);
  const link: string = prevResult.interfaces[0].name;
  return {
    machine,
    container,
    prevResult,
    link,
    portmap: network(machine, { type: "portmap", prevResult, runtimeConfig }),
  };
}

const filters = async (machine: Machine, link: string) => {
  const text = await machine.sh(
    `tc qdisc show dev ${link}; tc filter show dev ${link} ingress; tc filter show dev ${link} egress`,
  );
  return text.split("\n").filter((line) => /clsact|ingress ffff|handle 0x|mirred|police|flowid/.test(line));
};

const setting = (machine: Machine, link: string) =>
  machine.sh(`cat /proc/sys/net/ipv4/conf/${link}/route_localnet`).then((text) => text.trim());

for (const first of ["portmap", "bandwidth"] as const) {
  for (const last of ["portmap", "bandwidth"] as const) {
    test(`ptp: ${first} is added first, ${last} deleted last: both filter, the guard before the redirection`, async () => {
      const { machine, container, prevResult, link, portmap } = await attached("ptp");
      await using _ = machine;
      const rates = { egressRate: 8_000_000, egressBurst: 800_000 };
      const bandwidth = network(machine, { type: "bandwidth", prevResult, runtimeConfig: { bandwidth: rates } });
      const before = await filters(machine, link), inOrder = [portmap, bandwidth];
      if (first === "bandwidth") inOrder.reverse();
      for (const plugin of inOrder) await plugin.add(container);
      const both = (await filters(machine, link)).join("\n");
      expect(both.indexOf(GUARD)).toBeGreaterThan(0);
      expect(both.indexOf("mirred")).toBeGreaterThan(both.indexOf(GUARD));
      for (const plugin of inOrder) await plugin.check(container);
      const remaining = last === "portmap" ? portmap : bandwidth, deleted = last === "portmap" ? bandwidth : portmap;
      await deleted.del(container);
      await remaining.check(container);
      const one = (await filters(machine, link)).join("\n");
      expect([one.includes(GUARD), one.includes("mirred")]).toEqual([last === "portmap", last === "bandwidth"]);
      await remaining.del(container);
      expect(await filters(machine, link)).toEqual(before);
      expect(await setting(machine, link)).toBe("0");
    });
  }
}

for (
  const [name, theirs] of [
    ["a queueing discipline of others without a filter", "tc qdisc add dev br0 clsact"],
    [
      "with one where packets come in",
      "tc qdisc add dev br0 clsact; tc filter add dev br0 ingress pref 5 u32 match u32 0 0 flowid 1:5",
    ],
    [
      "with one where they leave",
      "tc qdisc add dev br0 clsact; tc filter add dev br0 egress pref 5 u32 match u32 0 0 flowid 1:5",
    ],
    [
      "of the other kind",
      "tc qdisc add dev br0 ingress; tc filter add dev br0 ingress pref 5 u32 match u32 0 0 flowid 1:5",
    ],
  ]
) {
  test(`bridge: ${name} is shared and stays`, async () => {
    const { machine, container, link, portmap } = await attached("bridge");
    await using _ = machine;
    await machine.sh(theirs!);
    const before = await filters(machine, link);
    await portmap.add(container);
    expect((await filters(machine, link)).join("\n")).toContain(GUARD);
    await portmap.check(container);
    await portmap.del(container);
    expect(await filters(machine, link)).toEqual(before);
  });
}

test("of two calls at once, one makes the queueing discipline, and the other takes it for another's: it goes with them", async () => {
  const { machine, container, link, portmap } = await attached("bridge");
  await using _ = machine;
  // What the first of them makes, in two steps, and in the middle the other one.
  await machine.sh("tc qdisc add dev br0 clsact");
  await portmap.add(container);
  await machine.sh(
    "tc filter add dev br0 ingress pref 1 handle 0x7f000001 bpf direct-action bytecode '1,6 0 0 4294967295'",
  );
  expect((await filters(machine, link)).length).toBe(3);
  await portmap.del(container);
  expect(await filters(machine, link)).toEqual([]);
});

test("no death leaves a queueing discipline without its filter: another call would take it for others'", async () => {
  const { machine, container, prevResult, link, portmap } = await attached("bridge");
  await using _ = machine;
  const conf = { cniVersion: "1.1.0", name: "net", type: "portmap", prevResult, runtimeConfig };
  let kills = 0, guarded = 0;
  for (;; kills++) {
    const call = { plugin: "portmap", command: "ADD", container, conf };
    const { hit } = await killAt(machine, patchbayPlugins(), call, { syscall: "sendto", nth: kills + 1 });
    if (!hit) break;
    const found = (await filters(machine, link)).join();
    expect(found.includes("clsact")).toBe(found.includes(GUARD));
    if (found.includes(GUARD)) guarded++;
    await portmap.del(container);
    expect(await filters(machine, link)).toEqual([]);
  }
  expect([kills - guarded > 0, guarded > 0]).toEqual([true, true]);
});

test("a queueing discipline that others come to use stays with their filter", async () => {
  const { machine, container, link, portmap } = await attached("bridge");
  await using _ = machine;
  await portmap.add(container);
  await machine.sh("tc filter add dev br0 egress pref 5 u32 match u32 0 0 flowid 1:5");
  await portmap.del(container);
  const left = (await filters(machine, link)).join("\n");
  expect([left.includes(GUARD), left.includes("flowid 1:5")]).toEqual([false, true]);
});

test("where others have the first priority, ports are published, and the program says that a flush takes the guard", async () => {
  const { machine, container, link, portmap } = await attached("bridge");
  await using _ = machine;
  await machine.sh("tc qdisc add dev br0 clsact; tc filter add dev br0 ingress pref 1 u32 match u32 0 0 flowid 1:5");
  const before = await filters(machine, link), { code, stderr } = await portmap.call("ADD", container);
  expect(code).toBe(0);
  expect(stderr).toContain("guarded from br0 by rules that a flush takes");
  expect(await filters(machine, link)).toEqual(before);
  expect(await machine.sh("nft list map ip patchbay_localhost links")).toContain("without a filter");
  await portmap.check(container);
  await portmap.del(container);
  expect([await setting(machine, link), await filters(machine, link)]).toEqual(["0", before]);
});

test("CHECK misses the filter, repair makes it again, and DEL after a flush takes it away", async () => {
  const { machine, container, link, portmap } = await attached("bridge");
  await using _ = machine;
  await portmap.add(container);
  const before = await filters(machine, link);
  for (
    const harm of [
      "tc qdisc del dev br0 clsact",
      "tc filter del dev br0 ingress",
      "tc qdisc del dev br0 clsact; nft flush ruleset",
    ]
  ) {
    await machine.sh(harm);
    const { json } = await portmap.call("CHECK", container);
    expect(json.msg).toContain(harm.includes("flush") ? "br0 is not in map links" : "br0 has no filter");
    await machine.sh(`${PATCHBAY} repair`);
    await portmap.check(container);
    // A queueing discipline that is there is another's, for all that is known.
    expect((await filters(machine, link)).join().replace("0x7f000002", "0x7f000001")).toBe(before.join());
  }
  await machine.sh("nft flush ruleset");
  await portmap.del(container);
  expect([await setting(machine, link), await filters(machine, link)]).toEqual(["0", []]);
});

test("bandwidth: the redirection of the reference plugin, which has the first priority, is known and removed", async () => {
  const { machine, container, prevResult, link } = await attached("ptp");
  await using _ = machine;
  const rates = { egressRate: 8_000_000, egressBurst: 800_000 };
  const bandwidth = network(machine, { type: "bandwidth", prevResult, runtimeConfig: { bandwidth: rates } });
  await bandwidth.add(container);
  await machine.sh(`
    IFB=$(ip -br link show type ifb | cut -d' ' -f1)
    tc filter del dev ${link} ingress
    tc filter add dev ${link} ingress pref 1 protocol all u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev $IFB`);
  await bandwidth.check(container);
  await bandwidth.del(container);
  expect(await filters(machine, link)).toEqual([]);
});
