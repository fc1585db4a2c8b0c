/**
 * What a container that may send any frame does to the host, over every kind of network: the frames are real, and the host
 * is looked at afterwards. Where a row says "arrives", nothing refuses the packet, and it changes nothing of the host's.
 */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Container, type Machine } from "../support/machine.ts";
import type { PodmanPortMapping } from "../../src/podman-documents/netavark.schema.ts";
import { attach, bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { network } from "../support/network.ts";
import { connections, type Fates, fatesIn, type HostileNetwork, openWorld, reached } from "../support/hostile.ts";

const KEPT: Fates = {
  advertisement: "refused",
  redirect: "refused",
  redirect6: "refused",
  connectingToLoopback: "refused",
  datagramToLoopback: "refused",
  toLoopback6: "refused",
  fromLoopback: "refused",
  fromHost: "refused",
  fromStranger: "arrives",
  dhcpAnswer: "arrives",
};
/** What the container sends to the host's link leaves by the wire. */
const OUTSIDE: Fates = { ...KEPT, fromStranger: "not there", dhcpAnswer: "not there" };
/** ipvlan shares the MAC address of the host's link: the host hears the container as it hears a neighbour on the wire. */
const NEXT_DOOR: Fates = { ...KEPT, redirect: "accepted", dhcpAnswer: "not there" };

interface Row {
  name: string;
  needs?: Feature;
  open(machine: Machine): Promise<HostileNetwork>;
  /** The container has a port of its own, and a neighbour has 8080 for all addresses, and 8081 for 127.0.0.1. */
  isPublished?: true;
  fates?: Fates;
}

const v4 = { type: "host-local", subnet: "10.88.0.0/24" };
const v6 = { type: "host-local", subnet: "fd88::/64" };

/** `link`: undefined for the host's end of the pair. */
function byCni(conf: Record<string, unknown> & { type: string }, link?: string) {
  return async (machine: Machine): Promise<HostileNetwork> => {
    const net = network(machine, conf), bad = await machine.container("bad"), made = await net.add(bad);
    const mapping = (hostPort: number, hostIP = "") => ({ hostPort, containerPort: 80, protocol: "tcp", hostIP });
    const publish = (container: Container, prevResult: unknown, portMappings: unknown[]) =>
      network(machine, { type: "portmap", prevResult, runtimeConfig: { portMappings } }).add(container);
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
  { name: "bridge, IPv6", open: byCni({ ...bridge, ipam: v6 }, "br0") },
  { name: "bridge, layer 2 only", open: byCni({ type: "bridge", bridge: "br0" }, "br0") },
  {
    name: "bridge, a VLAN with its gateway",
    open: byCni({ ...bridge, vlan: 7 }, "br0.7"),
    needs: "bridge VLAN filtering",
  },
  { name: "ptp", open: byCni({ type: "ptp", ipam: v4 }) },
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
    fates: { ...KEPT, advertisement: "accepted", redirect: "accepted" },
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

for (const { name, needs, open, isPublished, fates = KEPT } of rows) {
  test.skipIf(lacks(needs))(name, async () => {
    await using machine = await openWorld();
    const net = await open(machine);
    expect(await fatesIn(machine, net)).toEqual(fates);
    const setting = await machine.sh(`cat /proc/sys/net/ipv4/conf/${net.link}/route_localnet`);
    expect(setting).toBe(isPublished ? "1\n" : "0\n");
    if (isPublished) expect(await connections(machine, net)).toEqual(reached);
  });

  // Otherwise the packets could be wrong, and nothing would be refused.
  if (fates !== KEPT) continue;
  test.skipIf(lacks(needs))(`${name}: without what is refused, all of it counts`, async () => {
    await using machine = await openWorld();
    const net = await open(machine);
    await machine.sh(`
      cd /proc/sys/net
      echo 2 > ipv6/conf/${net.link}/accept_ra
      echo 1 > ipv4/conf/${net.link}/accept_redirects; echo 1 > ipv4/conf/all/accept_redirects
      nft delete table ip patchbay_localhost 2> /dev/null || true
      echo 1 > ipv4/conf/${net.link}/route_localnet`);
    expect(await fatesIn(machine, net)).toEqual({
      ...KEPT,
      advertisement: "accepted",
      redirect: "accepted",
      connectingToLoopback: "accepted",
      datagramToLoopback: "accepted",
    });
    if (!isPublished) return;
    expect(await connections(machine, net)).toEqual({ ...reached, loopback: net.address, asLoopback: net.gateway });
  });
}
