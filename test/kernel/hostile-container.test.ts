/**
 * What a container that may send any frame does to the host, over every kind of network: the frames are real, and the host
 * is looked at afterwards. Where a row says "arrives", nothing refuses the packet, and it changes nothing of the host's.
 */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Container, type Machine } from "../support/machine.ts";
import type { PodmanPortMapping } from "../../src/interop/podman-documents/netavark.schema.ts";
import { attach, bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { network } from "../support/network.ts";
import {
  connections,
  type Fates,
  fatesIn,
  type HostileNetwork,
  macOf,
  NOTHING_BELIEVED,
  openWorld,
  reached,
  SENDER,
  watching,
} from "../support/hostile.ts";
import { datagram } from "../support/frames.ts";
import { serve } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";

/** What the container sends to the host's link leaves by the wire. */
const OUTSIDE: Fates = { ...NOTHING_BELIEVED, fromStranger: "not there", dhcpAnswer: "not there" };
/** ipvlan shares the MAC address of the host's link: the host hears the container as it hears a neighbour on the wire. */
const NEXT_DOOR: Fates = { ...NOTHING_BELIEVED, redirect: "accepted", dhcpAnswer: "not there" };

interface Row {
  name: string;
  needs?: Feature;
  open(machine: Machine): Promise<HostileNetwork>;
  /** The container has a port of its own, and a neighbour has 8080 for all addresses, and 8081 for 127.0.0.1. */
  isPublished?: true;
  fates?: Fates;
}

/** What reloads of a host's own rules begin with. */
const FLUSH = `for IPTABLES in iptables ip6tables; do
    for TABLE in filter nat mangle raw; do $IPTABLES -t $TABLE -F; $IPTABLES -t $TABLE -X; done
  done
  nft flush ruleset`;

const v4 = { type: "host-local", subnet: "10.88.0.0/24" };
const v6 = { type: "host-local", subnet: "fd88::/64" };

/** `link`: undefined for the host's end of the pair. */
function byCni({ backend, ...conf }: Record<string, unknown> & { type: string }, link?: string) {
  return async (machine: Machine): Promise<HostileNetwork> => {
    const net = network(machine, conf), bad = await machine.container("bad"), made = await net.add(bad);
    const mapping = (hostPort: number, hostIP = "") => ({ hostPort, containerPort: 80, protocol: "tcp", hostIP });
    const publish = (container: Container, prevResult: unknown, portMappings: unknown[]) =>
      network(machine, { type: "portmap", backend, prevResult, runtimeConfig: { portMappings } }).add(container);
    if (conf["publishes"]) {
      await publish(bad, made, [mapping(8082)]);
      const good = await machine.container("good");
      await publish(good, await net.add(good), [mapping(8080), mapping(8081, "127.0.0.1")]);
    }
    const [{ address = "10.88.0.2/24", gateway = "" } = {}] = made.ips ?? [];
    return { bad, link: link ?? made.interfaces[0].name, address: address.replace(/\/.*/, ""), gateway };
  };
}

function byPodman(more: Parameters<typeof bridgeNetwork>[1], isPublished = false, link = "podman8") {
  return async (machine: Machine): Promise<HostileNetwork> => {
    const bad = await machine.container("bad"),
      setUp = async (container: Container, ...rest: [number, PodmanPortMapping[]?]) => {
        const input = containerIn([{ network: bridgeNetwork(8, more) }], ...rest);
        expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
      };
    await setUp(bad, 1, isPublished ? [published(8082, 80)] : []);
    if (isPublished) {
      const forHost = published(8081, 80, { host_ip: "127.0.0.1" });
      await setUp(await machine.container("good"), 2, [published(8080, 80), forHost]);
    }
    return { bad, link, address: "10.88.0.11", gateway: "10.88.0.1" };
  };
}

const only4 = { ipv6_enabled: false, subnets: [{ subnet: "10.88.0.0/24", gateway: "10.88.0.1" }] };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipam: v4 };
const onUplink = { network_interface: "up0" };

const rows: Row[] = [
  { name: "bridge", open: byCni(bridge, "br0") },
  { name: "bridge, ports published", open: byCni({ ...bridge, publishes: true }, "br0"), isPublished: true },
  {
    name: "bridge, ports published by nftables",
    open: byCni({ ...bridge, publishes: true, backend: "nftables" }, "br0"),
    isPublished: true,
  },
  { name: "bridge, IPv6", open: byCni({ ...bridge, ipam: v6 }, "br0") },
  { name: "bridge, layer 2 only", open: byCni({ type: "bridge", bridge: "br0" }, "br0") },
  {
    name: "bridge, a VLAN with its gateway",
    open: byCni({ ...bridge, vlan: 7 }, "br0.7"),
    needs: "bridge VLAN filtering",
  },
  { name: "ptp", open: byCni({ type: "ptp", ipam: v4 }) },
  {
    name: "bridge, a VLAN with its gateway, ports published",
    open: byCni({ ...bridge, vlan: 7, publishes: true }, "br0.7"),
    needs: "bridge VLAN filtering",
    isPublished: true,
  },
  { name: "ptp, ports published", open: byCni({ type: "ptp", ipam: v4, publishes: true }), isPublished: true },
  { name: "ptp, IPv6", open: byCni({ type: "ptp", ipam: v6 }) },
  {
    name: "macvlan",
    open: byCni({ type: "macvlan", master: "up0", ipam: v4 }, "up0"),
    needs: "macvlan links",
    fates: OUTSIDE,
  },
  {
    name: "ipvlan",
    open: byCni({ type: "ipvlan", master: "up0", ipam: v4 }, "up0"),
    needs: "ipvlan links",
    fates: NEXT_DOOR,
  },
  {
    name: "vlan",
    open: byCni({ type: "vlan", master: "up0", vlanId: 7, ipam: v4 }, "up0"),
    needs: "VLAN links",
    fates: OUTSIDE,
  },
  { name: "podman, IPv4", open: byPodman(only4) },
  { name: "podman, IPv4, ports published", open: byPodman(only4, true), isPublished: true },
  { name: "podman, both families", open: byPodman({}) },
  { name: "podman, both families, ports published", open: byPodman({}, true), isPublished: true },
  { name: "podman, internal", open: byPodman({ ...only4, internal: true }) },
  { name: "podman, internal, both families", open: byPodman({ internal: true }, true) },
  {
    name: "podman, a bridge of the host's that is not managed",
    open: async (machine) => {
      await machine.sh(
        "ip link add podman8 type bridge; ip address add 10.88.0.1/24 dev podman8; ip link set podman8 up",
      );
      return await byPodman({ ...only4, options: { mode: "unmanaged" } })(machine);
    },
    // What the host's owner wants of it is not for us to change.
    fates: { ...NOTHING_BELIEVED, advertisement: "accepted", redirect: "accepted" },
  },
  {
    name: "podman, macvlan",
    open: byPodman({ ...only4, ...onUplink, driver: "macvlan" }, false, "up0"),
    needs: "macvlan links",
    fates: OUTSIDE,
  },
  {
    name: "podman, ipvlan",
    open: byPodman({ ...only4, ...onUplink, driver: "ipvlan" }, false, "up0"),
    needs: "ipvlan links",
    fates: NEXT_DOOR,
  },
];

for (const { name, needs, open, isPublished, fates = NOTHING_BELIEVED } of rows) {
  test.skipIf(lacks(needs))(name, async () => {
    await using machine = await openWorld();
    const net = await open(machine);
    expect(await fatesIn(machine, net)).toEqual(fates);
    const setting = await machine.sh(`cat /proc/sys/net/ipv4/conf/${net.link}/route_localnet`);
    expect(setting).toBe(isPublished ? "1\n" : "0\n");
    if (!isPublished) return;
    expect(await connections(machine, net)).toEqual(reached);
    await machine.sh(FLUSH);
    // Nobody reaches a port any more. What the container sends to 127.0.0.1 has nothing to do with that.
    expect(await connections(machine, net)).toEqual({
      ...reached,
      forAll: undefined,
      fromHost: [undefined, undefined],
    });
    await machine.sh(watching);
    expect(await fatesIn(machine, net)).toEqual(fates);
    expect(await machine.sh(`cat /proc/sys/net/ipv4/conf/${net.link}/route_localnet`)).toBe("1\n");
  });

  // Otherwise the packets could be wrong, and nothing would be refused.
  if (fates !== NOTHING_BELIEVED) continue;
  test.skipIf(lacks(needs))(`${name}: without what is refused, all of it counts`, async () => {
    await using machine = await openWorld();
    const net = await open(machine);
    await machine.sh(`
      cd /proc/sys/net
      echo 2 > ipv6/conf/${net.link}/accept_ra
      echo 1 > ipv4/conf/${net.link}/accept_redirects; echo 1 > ipv4/conf/all/accept_redirects
      nft delete table ip patchbay_localhost 2> /dev/null || true
      tc qdisc del dev ${net.link} clsact 2> /dev/null || true
      echo 1 > ipv4/conf/${net.link}/route_localnet`);
    expect(await fatesIn(machine, net)).toEqual({
      ...NOTHING_BELIEVED,
      advertisement: "accepted",
      redirect: "accepted",
      connectingToLoopback: "accepted",
      datagramToLoopback: "accepted",
    });
    if (!isPublished) return;
    expect(await connections(machine, net)).toEqual({ ...reached, loopback: net.address, asLoopback: net.gateway });
  });
}

for (
  const { name, conf, needs } of [
    { name: "macvlan", conf: { type: "macvlan", master: "up0" }, needs: "macvlan links" },
    { name: "ipvlan", conf: { type: "ipvlan", master: "up0" }, needs: "ipvlan links" },
    { name: "vlan", conf: { type: "vlan", master: "up0", vlanId: 7 }, needs: "VLAN links" },
  ] as const
) {
  for (const backend of ["iptables", "nftables"]) {
    test.skipIf(lacks(needs))(
      `${name}, ports published by ${backend}: the LAN does not reach 127.0.0.1`,
      async () => {
        await using machine = await openWorld();
        // The host's way to the container is the link with the LAN behind it.
        const ipam = { type: "host-local", subnet: "192.0.2.0/24", rangeStart: "192.0.2.100" };
        const container = await machine.container("good"),
          prevResult = await network(machine, { ...conf, ipam }).add(container);
        const portMappings = [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }];
        const ports = network(machine, { type: "portmap", backend, prevResult, runtimeConfig: { portMappings } });
        await ports.add(container);
        const world = machine.containers.find((one) => one.name === "world")!;
        const neighbour = { bad: world, link: "up0", address: "192.0.2.254", gateway: "192.0.2.1" };
        await using own = await serve(machine, undefined, "tcp", 9000);
        await machine.sh(`
        ip netns exec world sysctl -qw net.ipv4.conf.eth0.route_localnet=1
        ip -n world route flush table local root 127.0.0.0/8
        ip -n world route add 127.0.0.1 via 192.0.2.1 dev eth0 onlink`);
        for (const meanwhile of ["true", `${FLUSH}; ${watching}`]) {
          await machine.sh(meanwhile);
          expect(await machine.sh("cat /proc/sys/net/ipv4/conf/up0/route_localnet; tc qdisc show dev up0 clsact"))
            .toBe("0\n");
          expect(await own.ask(world, "127.0.0.1", 9000)).toBeUndefined();
          expect(await own.ask(world, "192.0.2.1", 9000)).toBe("192.0.2.254");
          const fates = await fatesIn(machine, neighbour);
          expect([fates.connectingToLoopback, fates.datagramToLoopback, fates.fromLoopback]).toEqual(
            Array(3).fill("refused"),
          );
        }
        if (backend === "nftables") return;
        await ports.add(container);
        await ports.check(container);
        await ports.del(container);
      },
    );
  }
}

test("bridge, ports published: two tags of VLAN 0 do not carry a packet past the guard", async () => {
  await using machine = await openWorld();
  const net = await byCni({ ...bridge, publishes: true }, "br0")(machine);
  await machine.sh(`${FLUSH}; ${watching}`);
  const at = { from: await macOf(machine, "eth0", net.bad), to: await macOf(machine, "br0") };
  const send = async (tags: string, destination: string) => {
    const frame = datagram({ ...at, source: net.address, destination }, 5555, 9);
    const tagged = `${frame.slice(0, 24)}${tags}${frame.slice(24)}`;
    await machine.sh(`ip netns exec bad ${SENDER} eth0 ${tagged}`);
  };
  for (const tags of ["", "81000000", "8100000081000000", "88a8000081000000", "810000008100000081000000"]) {
    await send(tags, "127.0.0.1");
  }
  const counted = () =>
    machine.sh(
      "nft list counter inet watch datagramToLoopback | grep packets; nft list counter inet watch fromStranger | grep packets",
    );
  // One tag of VLAN 0 is as good as none, and packets wait in one queue.
  await machine.sh(
    `ip netns exec bad ${SENDER} eth0 ${
      datagram({ ...at, source: "203.0.113.9", destination: "192.0.2.1" }, 5555, 9)
    }`,
  );
  await untilTrue(counted, (text) => !/packets 0 .*\n?$/.test(text.trim()));
  expect(await counted()).toMatch(/packets 0 [^]*packets 1 /);
  await machine.sh("tc qdisc del dev br0 clsact");
  for (const tags of ["", "81000000", "8100000081000000"]) await send(tags, "127.0.0.1");
  await untilTrue(counted, (text) => /packets 3 [^]*packets/.test(text));
});
