/** Alternative names of a link in the container, as many as the kernel permits: every verb works, and they stay there. */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const ipam = { type: "host-local", subnet: "10.40.0.0/24" };
/** The kernel takes 495 of the longest. */
const NAMES = Array.from({ length: 495 }, (_, at) => `n${String(at).padStart(126, "0")}`);

const subjects: {
  name: string;
  conf: Record<string, unknown> & { type: string };
  chained?: true;
  needs?: Feature;
}[] = [
  { name: "bridge", conf: { type: "bridge", isGateway: true, ipMasq: true, ipam } },
  { name: "ptp", conf: { type: "ptp", ipam } },
  { name: "host-device", conf: { type: "host-device", device: "dev5", ipam } },
  { name: "macvlan", conf: { type: "macvlan", master: "far5", ipam }, needs: "macvlan links" },
  { name: "tap", conf: { type: "tap", ipam } },
  { name: "tuning", conf: { type: "tuning", mtu: 1300, mac: "0a:00:00:00:00:09", promisc: true }, chained: true },
  { name: "bandwidth", conf: { type: "bandwidth", ingressRate: 8000, ingressBurst: 8000 }, chained: true },
  { name: "firewall", conf: { type: "firewall", backend: "nftables" }, chained: true },
];

async function openHost(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh("ip link add far5 type veth peer name dev5; ip link set far5 up");
  return machine;
}

for (const { name, conf, chained, needs } of subjects) {
  test.skipIf(lacks(needs))(`${name}: CHECK and DEL of a link that has as many as it can have`, async () => {
    await using machine = await openHost();
    const container = await machine.container("c1");
    const below = network(machine, { type: "bridge", name: "below", isGateway: true, ipam });
    const prevResult = chained && await below.add(container);
    const net = network(machine, { ...conf, ...chained && { prevResult } });
    await net.add(container);
    await net.del(container);
    const moment = await quietMoment(machine);

    await net.add(container);
    const given = NAMES.map((name) => `link property add dev eth0 altname ${name}`).join("\n");
    await machine.sh("ip -batch -", { in: container, stdin: given });
    await net.check(container);
    await net.del(container);
    expect(await leftSince(moment, machine, /^\+ c1 link eth0 altnames=/)).toEqual([]);
  });
}

test("a device of the host's comes back with the alternative names that it had, whatever the container calls it", async () => {
  await using machine = await openHost();
  await machine.sh(`
    ip link property add dev dev5 altname in-the-attic altname in-the-cellar
    ip link add br0 type bridge`);
  const namesOf = async () => JSON.parse(await machine.sh("ip -j link show dev5"))[0].altnames.sort() as string[];
  const container = await machine.container("c1"),
    net = network(machine, { type: "host-device", device: "dev5", ipam });
  await net.add(container);
  // A name of another link there, one that a link may get, and one that is no text.
  await machine.sh(
    `ip link property del dev eth0 altname in-the-attic
    ip link property add dev eth0 altname br0 altname br1 altname "$(printf 'a\\377z')"`,
    { in: container },
  );
  expect(await net.call("DEL", container)).toMatchObject({ code: 0, stderr: "" });
  expect(await namesOf()).toEqual(["in-the-attic", "in-the-cellar"]);
});

test("a bridge that the configuration names so has its own name in the result, by which CHECK and DEL know the port", async () => {
  await using machine = await openHost();
  await machine.sh("ip link add br0 type bridge; ip link property add dev br0 altname alt0");
  const container = await machine.container("c1");
  const net = network(machine, { type: "bridge", bridge: "alt0", isGateway: true, ipam });
  for (const hasLedger of [true, false]) {
    const { interfaces } = await net.add(container);
    expect(interfaces.map(({ name }: { name: string }) => name)).toEqual([
      "br0",
      expect.stringMatching(/^veth/),
      "eth0",
    ]);
    if (!hasLedger) await machine.sh("rm -r /run/patchbay");
    await net.check(container);
    // Only the host's end is left to find: the container has moved the other.
    await machine.sh("ip netns add elsewhere; ip -n c1 link set eth0 netns elsewhere");
    await net.del(container, { env: { CNI_NETNS: "" } });
    expect(await machine.sh("ip -br link show master br0")).toBe("");
    await machine.sh("ip netns del elsewhere");
  }
});
