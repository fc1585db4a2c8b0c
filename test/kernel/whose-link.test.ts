/**
 * DEL removes the link of its own attachment, not one that got the same name since or had it before. The path of a
 * namespace that ended is given to the next one, and link names repeat.
 */
import { expect, test } from "bun:test";
import { killAt } from "../support/injection.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const ipam = { type: "host-local", subnet: "10.20.0.0/24" };
const master = "ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up";
const kinds = [
  { type: "bridge", isGateway: true, ipMasq: true },
  { type: "ptp", ipMasq: true },
  { type: "macvlan", master: "m0" },
  { type: "tap" },
];

test.each(kinds)("of two containers that had one path, DEL of the first leaves the second: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  const as = (containerId: string) => ({ containerId, conf: { prevResult: undefined } });
  for (const ending of ["DEL", "DEL without CNI_NETNS", "GC"]) {
    await net.add(container, as("first"));
    // Something else holds it: what leads there from the host has not ended with the path.
    await using held = machine.start(["nsenter", `--net=${container.netnsPath}`, "sleep", "60"]);
    await machine.sh("until grep -q sleep /proc/$HELD/comm; do sleep 0.01; done", { env: { HELD: `${held.pid}` } });
    await machine.sh("ip netns del c1; ip netns add c1");
    const result = await net.add(container, as("second"));
    const moment = await quietMoment(machine);

    const shown = await machine.run([PATCHBAY, "inspect", "net", "first"]);
    expect(shown.stdout).toContain("gone");
    const env = ending === "DEL" ? undefined : { CNI_NETNS: undefined };
    if (ending !== "GC") {
      await net.del(container, { ...as("first"), env });
      // There is no ledger any more.
      await net.del(container, { ...as("first"), env });
    } else {
      const valid = [{ containerID: "second", ifname: "eth0" }];
      expect((await net.call("GC", undefined, { conf: { "cni.dev/valid-attachments": valid } })).stdout).toBe("");
    }
    // What was the first one's has gone, and the second one's rules have come up in its place.
    expect(await leftSince(moment, machine, /^- |^\+ .* nat #\d+ .*second/)).toEqual([]);
    expect(await machine.sh("ls /run/patchbay/net")).toBe(`second@eth0@${conf.type}\n`);
    await net.check(container, { containerId: "second", conf: { prevResult: result } });
    await net.del(container, as("second"));
    expect(await machine.sh("ip -br link show type veth | grep -v ^m || true")).toBe("");
    held.kill();
    await held.exited;
  }
});

test.each(kinds)("a network that was renamed after ADD is deleted under its new name: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  await net.add(container, { ifName: "eth1" });
  await net.del(container, { ifName: "eth1" });
  const moment = await quietMoment(machine);
  const prevResult = await net.add(container);
  // Without a result it may as well be the DEL after an ADD that found the name taken.
  await net.del(container, { conf: { name: "renamed", prevResult: undefined } });
  await net.check(container);
  await net.del(container, { conf: { name: "renamed", prevResult } });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test.each(kinds)("a ledger of an earlier namespace lays no claim to the link of this one: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const earlier = network(machine, { ...conf, name: "earlier", ipam }), net = network(machine, { ...conf, ipam });
  const isThere = async () => (await machine.sh("ip -br link show", { in: container })).includes("eth0");
  await earlier.add(container);
  await machine.sh("ip netns del c1; ip netns add c1");
  await net.add(container);
  await machine.sh("rm -r /run/patchbay/net");
  await net.del(container);
  expect(await isThere()).toBe(false);
  // One of this namespace does.
  await network(machine, { ...conf, name: "later", ipam }).add(container);
  await net.del(container);
  expect(await isThere()).toBe(true);
});

/** What may have the name of the host's end since: the MAC is another's, or the kind is. */
const strangers = [
  "ip link add HOST type veth peer name other",
  "ip link add HOST address MAC type bridge",
];

test.each(kinds.slice(0, 2).flatMap((conf) => strangers.map((stranger) => ({ conf, stranger, type: conf.type }))))(
  "a stranger under the name of the host's end stays: $type, $stranger",
  async ({ conf, stranger }) => {
    await using machine = await openMachine();
    const container = await machine.container("c1");
    const net = network(machine, { ...conf, ipam });
    for (const ending of ["DEL", "DEL without CNI_NETNS", "GC"]) {
      const { name, mac } = (await net.add(container)).interfaces.find(({ name }: { name: string }) =>
        name.startsWith("veth")
      );
      await machine.sh(`ip netns del c1; until ! ip link show ${name} 2>/dev/null; do sleep 0.01; done`);
      await machine.sh(stranger.replace("HOST", name).replace("MAC", mac));
      const index = await machine.sh(`cat /sys/class/net/${name}/ifindex`);

      if (ending === "GC") await net.gc([]);
      else await net.del(container, { env: ending === "DEL" ? undefined : { CNI_NETNS: undefined } });
      expect(await machine.sh(`cat /sys/class/net/${name}/ifindex`)).toBe(index);
      await machine.sh(`ip link del ${name}; ip netns add c1`);
    }
  },
);

test.each(kinds)("a killed ADD lays no claim to the link that it found: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  const late = { cniVersion: "1.1.0", name: "late", ...conf, ipam: { ...ipam, subnet: "10.30.0.0/24" } };
  await net.add(container);
  let kills = 0;
  for (const syscall of ["ioctl", "write", "unlink"]) {
    for (let nth = 1; nth < 30; nth++) {
      const call = { plugin: conf.type, command: "ADD", container, conf: late };
      const { hit } = await killAt(machine, patchbayPlugins(), call, { syscall, nth });
      if (!hit) break;
      kills++;
      await network(machine, late).del(container);
      await net.check(container);
    }
  }
  expect(kills).toBeGreaterThan(3);
});

test.each(kinds)("GC removes an interface of a container that has a valid one: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  await net.add(container, { ifName: "eth0" });
  await net.add(container, { ifName: "eth1" });
  await net.gc([container]);
  expect(await machine.sh("ip -br link show", { in: container })).not.toContain("eth1");
  expect(await machine.sh("ls /run/patchbay/net")).toBe(`ctr-c1@eth0@${conf.type}\n`);
  await net.check(container);
});

test.each(kinds)("CHECK asks for the container's interface in prevResult: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  const result = await net.add(container);
  const inside = result.interfaces.at(-1);
  for (const [sandbox, told] of [[undefined, ""], ["/elsewhere", "/elsewhere"]]) {
    const interfaces = [...result.interfaces.slice(0, -1), { ...inside, sandbox }];
    const { json } = await net.call("CHECK", container, { conf: { prevResult: { ...result, interfaces } } });
    expect(json.msg).toBe(`Sandbox in prevResult ${told} doesn't match configured netns: ${container.netnsPath}`);
  }
  // The last of the name counts: earlier ones are of other plugins.
  const again = [...result.interfaces.slice(0, -1), { ...inside, sandbox: "/elsewhere" }, inside];
  await net.check(container, { conf: { prevResult: { ...result, interfaces: again } } });
  const written = [...result.interfaces.slice(0, -1), {
    ...inside,
    mac: inside.mac.toUpperCase().replaceAll(":", "-"),
  }];
  await net.check(container, { conf: { prevResult: { ...result, interfaces: written } } });
});

test.each(kinds)("CNI_ARGS that ADD refuses keep nothing from being taken away: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ipam });
  await net.add(container);
  await machine.sh("rm -r /run/patchbay");
  await net.del(container, { args: "K=V;;MAC=none" });
  expect(await machine.sh("ip -br link show", { in: container })).not.toContain("eth0");
});

test("a link's name has no place for a number in it", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const moment = await quietMoment(machine);
  for (const conf of [...kinds, { type: "host-device", device: "lo" }]) {
    const answer = await network(machine, { ...conf, ipam }).call("ADD", container, { ifName: "eth%d" });
    expect(answer.json).toMatchObject({ code: 4, msg: "interface name contains %" });
  }
  const bridge = await network(machine, { type: "bridge", bridge: "br%d", ipam }).call("ADD", container);
  expect(bridge.json.msg).toContain(`could not add "br%d"`);
  expect(await leftSince(moment, machine)).toEqual([]);
});

/** A plugin in the place of the DHCP client's: writes down what address the link has when it gives it back. */
const dhcp = `#!/bin/sh
case $CNI_COMMAND in
  ADD) echo '{"cniVersion":"1.0.0","ips":[{"address":"10.20.0.5/24","gateway":"10.20.0.1"}]}' ;;
  DEL) ip netns exec c1 ip -o -4 address show dev eth0 >>/run/seen 2>&1 ;;
esac
`;

test.each(kinds)("an address of a DHCP server is given back while the link is there: $type", async (conf) => {
  await using machine = await openMachine();
  await machine.sh(master);
  const container = await machine.container("c1");
  await machine.run(["sh", "-c", "mkdir /run/bin; cat >/run/bin/dhcp; chmod 755 /run/bin/dhcp"], { stdin: dhcp });
  const env = { CNI_PATH: "/run/bin" };
  const net = network(machine, { ...conf, cniVersion: "1.0.0", ipam: { type: "dhcp" } }, undefined, { env });
  for (const spoil of ["true", "rm -r /run/patchbay"]) {
    await net.add(container);
    await machine.sh(spoil);
    await net.del(container);
    expect(await machine.sh("cat /run/seen; rm /run/seen")).toContain("inet 10.20.0.5/24");
    expect(await machine.sh("ip -br link show", { in: container })).not.toContain("eth0");
  }
});
