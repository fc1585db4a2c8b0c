/**
 * A container of an internal network of podman's reaches nobody but its neighbours and the host, and nobody else reaches it:
 * in both families whatever subnets the network has, in each order of set-up, and whatever the host's forwarding switches say.
 */
import { expect, test } from "bun:test";
import type { PodmanNetwork } from "../../src/interop/podman-documents/netavark.schema.ts";
import { openWorld } from "../support/hostile.ts";
import type { Container, Machine } from "../support/machine.ts";
import { bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { inputOf, isClosed, off, on, setUp, tearDown } from "../support/netavark/internal-network.ts";
import { HELPERS } from "../support/netavark/netavark.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";
import { arriving, everyWay, type Ways } from "../support/ways-out.ts";

type Network = Partial<PodmanNetwork>;

const v4 = { subnet: "10.88.0.0/24", gateway: "10.88.0.1" }, v6 = { subnet: "fd00:8::/64", gateway: "fd00:8::1" };
const withoutSubnets = { subnets: [], ipv6_enabled: false, ipam_options: { driver: "none" } };

/** The families of an internal network. */
const families: Record<string, Network> = {
  "both families": {},
  "IPv4 alone": { subnets: [v4], ipv6_enabled: false },
  "IPv6 alone": { subnets: [v6] },
  "no subnets": withoutSubnets,
};

type Beside = (machine: Machine, good: Container) => Promise<Pick<Ways, "goodAddresses" | "published">>;

const beside: Record<string, Beside> = {
  async "a usual network"(machine, good) {
    await setUp(machine, good, containerIn([{ network: bridgeNetwork(7) }], 2, [published(8080, 80)]));
    const goodAddresses = ["10.87.0.12", "fd00:7::12"] as const;
    return { goodAddresses, published: [["192.0.2.1", 8080], ["fd99::1", 8080], ["10.87.0.1", 8080]] };
  },
  async "the plugin bridge"(machine, good) {
    const ranges = [[{ subnet: "10.87.0.0/24" }], [{ subnet: "fd00:7::/64" }]];
    const conf = { type: "bridge", bridge: "br7", isDefaultGateway: true, ipam: { type: "host-local", ranges } };
    const { ips } = await network(machine, conf).add(good);
    const [one, two] = ips.map(({ address }: { address: string }) => address.replace(/\/.*/, ""));
    return { goodAddresses: [one, two] };
  },
};

const orders: [family: string, Network, beside: string][] = [
  ...Object.entries(families).map(([name, more]): (typeof orders)[number] => [name, more, "a usual network"]),
  ["IPv4 alone", families["IPv4 alone"]!, "the plugin bridge"],
];

for (const [name, more, nameBeside] of orders) {
  for (const isFirst of [true, false]) {
    test(`${name}, ${isFirst ? "before" : "after"} ${nameBeside}: nothing gets out, nor in`, async () => {
      await using machine = await openWorld();
      await machine.sh(off);
      const bad = await machine.container("bad"), good = await machine.container("good"), input = inputOf(more);
      if (isFirst) await setUp(machine, bad, input);
      const others = await beside[nameBeside]!(machine, good);
      if (!isFirst) await setUp(machine, bad, input);
      // The second lock. What is set up beside it switches the host's forwarding on, and leaves it.
      expect(await machine.sh("cat /proc/sys/net/ipv4/conf/podman8/forwarding")).toBe("0\n");
      await machine.sh(`${off}; ${on}`);
      const ways = { bad, good, link: "podman8", ...others };
      expect(await arriving(machine, ways)).toEqual([]);

      // Otherwise the packets could be wrong, and nothing would be refused.
      await machine.sh("nft delete table inet patchbay_internal");
      expect(await arriving(machine, ways, true)).toEqual([...everyWay]);
    });
  }
}

test("a usual network is as it was, beside an internal one", async () => {
  await using machine = await openWorld();
  const [bad, good, other] = [
    await machine.container("bad"),
    await machine.container("good"),
    await machine.container("other"),
  ];
  await setUp(machine, other, containerIn([{ network: bridgeNetwork(9, { internal: true }) }], 3));
  const goodAddresses = ["10.87.0.12", "fd00:7::12"] as const, usual = { isolate: "false" };
  await setUp(machine, good, containerIn([{ network: bridgeNetwork(7, { options: usual }) }], 2));
  await setUp(machine, bad, inputOf({ internal: false, options: usual }));
  const ways = { bad, good, link: "podman8", goodAddresses };
  expect(await arriving(machine, ways, true)).toEqual([...everyWay]);
});

/** Whether each reaches the other, in both families. */
async function isNeighbour(machine: Machine, from: Container, to: Container | undefined, addresses: string[]) {
  for (const address of addresses) {
    const reaches = await ping(machine, from, address);
    if (!reaches) return `${from.name} does not reach ${address} of ${to?.name ?? "the host"}`;
  }
  return "reached";
}

for (const isFiltered of [false, true]) {
  test(`the host and neighbours reach each other; br_netfilter: ${isFiltered}`, async () => {
    await using machine = await openWorld();
    const [one, two] = [await machine.container("one"), await machine.container("two")];
    await setUp(machine, one, inputOf({}, 1));
    await setUp(machine, two, inputOf({}, 2));
    const keys = ["iptables", "ip6tables"].map((each) => `net.bridge.bridge-nf-call-${each}=${isFiltered ? 1 : 0}`);
    await machine.sh(`sysctl -qw ${keys.join(" ")}; ${on}`);
    expect(await isNeighbour(machine, one, two, ["10.88.0.12", "fd00:8::12"])).toBe("reached");
    expect(await isNeighbour(machine, one, undefined, ["10.88.0.1", "fd00:8::1"])).toBe("reached");
    for (const address of ["10.88.0.11", "fd00:8::11"]) expect(await ping(machine, undefined, address)).toBe(true);
  });
}

const waysToOpen: [how: string, says: string][] = [
  ["nft delete table inet patchbay_internal", "podman8 is not in bridges of table inet patchbay_internal"],
  ["nft flush ruleset", "podman8 is not in bridges of table inet patchbay_internal"],
  ["nft flush chain inet patchbay_internal forward", "forward of table inet patchbay_internal has other rules"],
  [
    "nft insert rule inet patchbay_internal forward accept",
    "forward of table inet patchbay_internal has other rules",
  ],
  ["nft flush map inet patchbay_internal bridges", "podman8 is not in bridges of table inet patchbay_internal"],
  ["nft flush set inet patchbay_internal within", "podman8 is not in within of table inet patchbay_internal"],
  [`${off}; ${on}`, "net.ipv4.conf.podman8.forwarding is 1, not 0"],
  [`${off}; ${on}`, "net.ipv6.conf.podman8.forwarding is 1, not 0"],
];

test("whoever opens it is found out, and repair and the next container close it", async () => {
  await using machine = await openWorld();
  await setUp(machine, await machine.container("one"), inputOf({}, 1));
  const inspect = async () => await machine.run([PATCHBAY, "inspect"]);
  expect((await inspect()).code).toBe(0);
  let number = 1;
  for (const [how, says] of waysToOpen) {
    await machine.sh(how);
    const { code, stdout } = await inspect();
    expect({ how, code, stdout }).toEqual({ how, code: 1, stdout: expect.stringContaining(says) });
    expect(await machine.run([PATCHBAY, "repair"])).toMatchObject({ code: 0, stderr: "" });
    expect((await inspect()).code).toBe(0);

    await machine.sh(how);
    await setUp(machine, await machine.container(`c${++number}`), inputOf({}, number));
    expect((await inspect()).code).toBe(0);
  }
});

test("a bridge that others made, by its alternative name", async () => {
  await using machine = await openWorld();
  await machine.sh(`${off}; ip link add br0 type bridge; ip link property add dev br0 altname podman8`);
  const bad = await machine.container("bad"), good = await machine.container("good"), input = inputOf({});
  await setUp(machine, bad, input);
  const others = await beside["a usual network"]!(machine, good);
  await machine.sh(on);
  expect(await arriving(machine, { bad, good, link: "br0", ...others })).toEqual([]);
  await tearDown(machine, bad, input);
  expect(await isClosed(machine)).toBe(false);
});

test("netavark's own set-up and removal beside it change nothing", async () => {
  await using machine = await openWorld();
  const [bad, other] = [await machine.container("bad"), await machine.container("other")];
  await setUp(machine, bad, inputOf({}));
  const { networks, ...rest } = containerIn([{ network: bridgeNetwork(7) }], 2);
  const input = { ...rest, networks: Object.fromEntries(networks.map((each) => [each.name, each])) };
  const byNetavark = async (verb: string) => {
    const command = [`${HELPERS}/netavark`, "-c", "/run/theirs", verb, other.netnsPath];
    await machine.sh("mkdir -p /run/theirs");
    expect(await machine.run(command, { stdin: JSON.stringify(input) })).toMatchObject({ code: 0 });
  };
  for (const verb of ["setup", "teardown"]) {
    await byNetavark(verb);
    expect(await machine.sh("nft list table inet patchbay_internal")).toContain("iif map @bridges drop");
    expect(await machine.sh("nft list map inet patchbay_internal bridges")).toContain('"podman8"');
  }
});
