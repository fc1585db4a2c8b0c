/**
 * The network that DHCP is tested in: a machine whose link leads to a namespace for servers, whose link `s0` has the
 * addresses 192.168.77.1 and fd00:77::1. The machine's own link is the bridge `br0`, for the bridge plugin, or `m0`, the
 * master for macvlan and ipvlan. Nothing on it has an address in the machine itself.
 *
 *     await using segment = await serverBehindBridge();
 *     const container = await segment.plug("c1");   // a container with eth0 on that network, without any plugin
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Container, type Machine, openMachine } from "../machine.ts";
import { Running, type RunningOptions } from "./running.ts";

/** Where a server runs. */
export interface Site {
  readonly segment: Segment;
  readonly namespace: Container;
  /** The address of its link `s0`, without the prefix length. */
  readonly address: string;
}

export interface Segment extends AsyncDisposable {
  readonly machine: Machine;
  /** The machine's link to the network. */
  readonly link: "br0" | "m0";
  readonly site: Site;
  /** For files of servers and clients; it goes with the segment. */
  readonly folder: string;
  /** Starts a program that ends with the segment, or before. */
  start(namespace: Container | undefined, command: readonly string[], options: RunningOptions): Running;
  /** Makes a container with a link `eth0` on the network, up and without an address but its link-local one. */
  plug(name: string): Promise<Container>;
}

export interface BridgeSegment extends Segment {
  readonly link: "br0";
  /** Makes another namespace for a server, with the address 192.168.77.`octet` and fd00:77::`octet`. */
  anotherSite(name: string, octet: number): Promise<Site>;
}

export interface RelayedSegment extends Segment {
  readonly link: "br0";
  /** Between the machine, where it is 192.168.78.1 on `dn0`, and the server, for which it is 192.168.77.2 on `up0`. */
  readonly relay: Container;
}

export async function serverBehindBridge(): Promise<BridgeSegment> {
  const segment = await openSegment("br0");
  const { machine } = segment;
  const anotherSite = async (name: string, octet: number) => {
    const namespace = await machine.container(name);
    await machine.sh(`${withoutDuplicates(name)}\n${port(`p-${name}`, name, "s0")}\n${serverLink(name, octet)}`);
    return { segment, namespace, address: `192.168.77.${octet}` };
  };
  await machine.sh(`${BRIDGE}\n${port("p0", "server", "s0")}\n${serverLink("server", 1)}`);
  return { ...segment, link: "br0", anotherSite };
}

export async function serverBehindMaster(): Promise<Segment> {
  const segment = await openSegment("m0");
  await segment.machine.sh(`
    ip link add m0 type veth peer name s0 netns server
    ${quiet("m0")}
    ip link set m0 up
    ${serverLink("server", 1)}
    ${untilUp("", "m0")}`);
  return segment;
}

/** The machine is on a network of its own, 192.168.78.0/24, and packets to the server go through the relay's namespace. */
export async function serverBehindRelay(): Promise<RelayedSegment> {
  const segment = await openSegment("br0");
  const { machine } = segment, relay = await machine.container("relay");
  await machine.sh(`
    ${BRIDGE}
    ${port("p0", "relay", "dn0")}
    ip -n relay address add 192.168.78.1/24 dev dn0
    ip link add up0 netns relay type veth peer name s0 netns server
    ip -n relay address add 192.168.77.2/24 dev up0
    ip -n relay link set up0 up
    ${serverLink("server", 1)}
    ip netns exec relay sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip -n server route add 192.168.78.0/24 via 192.168.77.2`);
  return { ...segment, link: "br0", relay };
}

const BRIDGE = `ip link add br0 type bridge\n${quiet("br0")}\nip link set br0 up`;

/** The machine itself takes no address from a router on the link. */
function quiet(link: string): string {
  return `echo 0 >/proc/sys/net/ipv6/conf/${link}/accept_ra`;
}

/** Link-local addresses are there at once, and not after a second that nobody else on the link has them. */
function withoutDuplicates(namespace: string): string {
  return `ip netns exec ${namespace} sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/dad_transmits'`;
}

/** A port of the bridge whose other end is in the namespace. */
function port(name: string, namespace: string, peer: string): string {
  return `
    ip link add ${name} type veth peer name ${peer} netns ${namespace}
    ip link set ${name} master br0 up
    ip -n ${namespace} link set lo up
    ip -n ${namespace} link set ${peer} up
    ${untilUp("", name)}`;
}

/** The route is for broadcasts of sockets that are bound to no link. */
function serverLink(namespace: string, octet: number): string {
  return `
    ip -n ${namespace} link set lo up
    ip -n ${namespace} link set s0 up
    ip -n ${namespace} address add 192.168.77.${octet}/24 dev s0
    ip -n ${namespace} -6 address add fd00:77::${octet.toString(16)}/64 dev s0 nodad
    ip -n ${namespace} route add 255.255.255.255 dev s0
    ${untilUp(`-n ${namespace}`, "s0")}
    ${untilLinkLocal(namespace, "s0")}`;
}

/** The kernel may notice late that a link has a carrier. */
function untilUp(where: string, link: string): string {
  return `until ip ${where} -br link show ${link} | grep -q ' UP '; do sleep 0.02; done`;
}

/** IPv6 sends nothing from an address that is still checked for duplicates. */
function untilLinkLocal(namespace: string, link: string): string {
  const shown = `ip -n ${namespace} -6 -o address show dev ${link} scope link -tentative`;
  return `until ${shown} | grep -q fe80; do sleep 0.02; done`;
}

async function openSegment<Link extends Segment["link"]>(link: Link): Promise<Segment & { link: Link }> {
  const machine = await openMachine();
  const folder = mkdtempSync(join(tmpdir(), "patchbay-dhcp-"));
  const namespace = await machine.container("server");
  await machine.sh(withoutDuplicates("server"));
  const running: Running[] = [];
  const segment: Segment & { link: Link } = {
    machine,
    link,
    folder,
    get site() {
      return { segment, namespace, address: "192.168.77.1" };
    },
    start(where: Container | undefined, command: readonly string[], options: RunningOptions) {
      const started = Running.start({ machine, in: where }, command, options);
      running.push(started);
      return started;
    },
    async plug(name: string) {
      const container = await machine.container(name);
      const macvlan = `ip link add link m0 name eth0 netns ${name} type macvlan mode bridge`;
      await machine.sh(`
        ${withoutDuplicates(name)}
        ${link === "m0" ? macvlan : port(`p-${name}`, name, "eth0")}
        ip -n ${name} link set eth0 up
        ${untilUp(`-n ${name}`, "eth0")}
        ${untilLinkLocal(name, "eth0")}`);
      return container;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((one) => one.stop()));
      await machine[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
  return segment;
}
