/**
 * A host in the world, and a container that sends it every frame that it should not believe. What a host's program receives
 * is counted behind the kernel's own checks.
 */
import { expect } from "bun:test";
import { resolve } from "node:path";
import * as frames from "./frames.ts";
import { type Container, type Machine, openMachine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";
import { serve } from "./traffic.ts";

export const SENDER = `${process.execPath} ${resolve(import.meta.dir, "send-frame.ts")}`;
/** The host towards the world, its router there, and a neighbour of the router's. */
const HOST = "192.0.2.1", ROUTER = "192.0.2.254", OTHER_ROUTER = "192.0.2.77", FAR = "198.51.100.7";
const STRANGER = "203.0.113.9", HOST6 = "fd99::1", ROUTER6 = "fe80::254", FAR6 = "2001:db8:f::7";

/**
 * `refused`: by the host. `accepted`: it believes it. `arrives`: it does, and changes nothing. `not there`: it goes by.
 */
type Fate = "refused" | "arrives" | "not there" | "accepted";

/** What becomes of each packet, or of a connection. */
export interface Fates {
  advertisement: Fate;
  redirect: Fate;
  /** IPv6: of a route over another link. */
  redirect6: Fate;
  connectingToLoopback: Fate;
  datagramToLoopback: Fate;
  /** ::1 */
  toLoopback6: Fate;
  fromLoopback: Fate;
  fromHost: Fate;
  /** Layer 2 is not kept apart: a container can claim the address of another one on its bridge. */
  fromStranger: Fate;
  /** Any container of a network may answer a client on it. The host is no client. */
  dhcpAnswer: Fate;
}

/** A host that believes nothing of it. */
export const NOTHING_BELIEVED: Fates = {
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

export interface HostileNetwork {
  bad: Container;
  /** The host's link as the container sees it: "" where it sees none. */
  link: string;
  address: string;
  gateway: string;
}

/** Whom a connection shows to have called: undefined where nobody answers. */
export const reached = {
  /** A server of the host, over a route of the container's own to 127.0.0.1. */
  loopback: undefined as unknown,
  /** A neighbour's port, published for everybody. */
  forAll: expect.any(String) as unknown,
  /** One that is published for 127.0.0.1, over that route, and by another address of the host. */
  asLoopback: undefined as unknown,
  forHost: undefined as unknown,
  /** The host itself, at both. */
  fromHost: [expect.any(String), expect.any(String)] as unknown[],
};

/** Connections to a network with published ports: a neighbour's 8080, and 8081 for 127.0.0.1. */
export async function connections(machine: Machine, { bad, gateway }: HostileNetwork): Promise<typeof reached> {
  const good = machine.containers.find(({ name }) => name === "good")!;
  await using server = await serve(machine, good, "tcp", 80);
  await using own = await serve(machine, undefined, "tcp");
  await machine.sh(`
    ip netns exec bad sysctl -qw net.ipv4.conf.eth0.route_localnet=1
    ip -n bad route flush table local root 127.0.0.0/8
    ip -n bad route replace 127.0.0.1 via ${gateway} dev eth0 onlink`);
  const [loopback, [forAll, asLoopback, forHost], fromHost] = await Promise.all([
    own.ask(bad, "127.0.0.1"),
    server.askAll(bad, [[gateway, 8080], ["127.0.0.1", 8081], [gateway, 8081]]),
    server.askAll(undefined, [["127.0.0.1", 8080], ["127.0.0.1", 8081]]),
  ]);
  return { loopback, forAll, asLoopback, forHost, fromHost };
}

/** Counts what reaches programs of the host. */
export const watching = `nft -f - <<END
      table inet watch {
        counter connectingToLoopback { }
        counter datagramToLoopback { }
        counter toLoopback6 { }
        counter fromLoopback { }
        counter fromHost { }
        counter fromStranger { }
        counter dhcpAnswer { }
        chain input {
          type filter hook input priority 300;
          iif lo accept
          ip daddr 127.0.0.0/8 meta l4proto tcp counter name connectingToLoopback
          ip daddr 127.0.0.0/8 meta l4proto udp counter name datagramToLoopback
          ip6 daddr ::1 counter name toLoopback6
          ip saddr 127.0.0.0/8 counter name fromLoopback
          ip saddr ${HOST} counter name fromHost
          ip saddr ${STRANGER} counter name fromStranger
          udp dport 68 counter name dhcpAnswer
        }
      }
END`;

/** A host with a way into the world, and counters of what reaches its programs from elsewhere. */
export async function openWorld(): Promise<Machine> {
  const machine = await openMachine();
  await machine.container("world");
  await machine.sh(`
    sysctl -qw net.ipv6.conf.default.accept_dad=0
    ip link add up0 type veth peer name eth0 netns world
    ip link set up0 up; ip -n world link set eth0 up
    ip address add ${HOST}/24 dev up0; ip address add ${HOST6}/64 dev up0 nodad
    ip -n world address add ${ROUTER}/24 dev eth0; ip -n world address add ${OTHER_ROUTER}/24 dev eth0
    ip route add default via ${ROUTER}; ip -6 route add ${FAR6} via ${ROUTER6} dev up0
    ${watching}
    ip netns exec world nft -f - <<END
      table netdev watch {
        counter past { }
        chain ingress {
          type filter hook ingress device eth0 priority 0;
          ip saddr ${STRANGER} counter name past
        }
      }
END
    # Only a router whose MAC address is known can be the next one.
    until ping -nqc1 -W1 ${OTHER_ROUTER} > /dev/null; do :; done`);
  return machine;
}

/** What comes of it: addresses of its prefix, and a route by the container. Other routes may be late on a busy host. */
const OF_ADVERTISEMENT = /2001:db8:bad:|via fe80::bad/;

export async function fatesIn(machine: Machine, { bad, link, address }: HostileNetwork): Promise<Fates> {
  const own = address.includes(":") ? "10.88.0.2" : address;
  const at = { from: await macOf(machine, "eth0", bad), to: await macOf(machine, link) };
  await using udp = await serve(machine, undefined, "udp");
  await using tcp = await serve(machine, undefined, "tcp");
  const before = await routesOf(machine), onLink = { source: own, destination: "127.0.0.1" };
  const everybody = { source: "fe80::bad", destination: "ff02::1" };
  await machine.sh(`ip netns exec ${bad.name} ${SENDER} eth0 ${
    [
      frames.routerAdvertisement({ ...at, ...everybody, to: frames.ALL_NODES }, "2001:db8:bad::"),
      frames.redirect(
        { ...at, source: ROUTER, destination: HOST },
        OTHER_ROUTER,
        { source: HOST, destination: FAR },
        udp.port,
      ),
      frames.redirect6({ ...at, source: ROUTER6, destination: HOST6 }, "fe80::bad", {
        source: HOST6,
        destination: FAR6,
      }),
      frames.connecting({ ...at, ...onLink }, 5555, tcp.port),
      frames.datagram({ ...at, ...onLink }, 5555, udp.port),
      frames.datagram({ ...at, source: "fe80::bad", destination: "::1" }, 5555, udp.port),
      frames.datagram({ ...at, source: "127.0.0.1", destination: HOST }, 5555, udp.port),
      frames.datagram({ ...at, source: HOST, destination: HOST }, 5555, udp.port),
      frames.datagram({ ...at, source: own, destination: "255.255.255.255", to: frames.BROADCAST }, 67, 68),
      frames.datagram({ ...at, source: STRANGER, destination: HOST }, 5555, udp.port),
    ].join(" ")
  }`);
  // The last of them has come, to the host or past it.
  await untilTrue(() => arrivedIn(machine), ({ fromStranger = 0, past = 0 }) => fromStranger + past > 0);
  const arrived = await arrivedIn(machine), after = await routesOf(machine);
  const ifArrived = (name: string, yes: Fate, no: Fate = "refused") => (arrived[name] ?? 0) > 0 ? yes : no;
  return {
    advertisement: after.some((line) => !before.includes(line) && OF_ADVERTISEMENT.test(line))
      ? "accepted"
      : "refused",
    redirect: (await machine.sh(`ip route get ${FAR}`)).includes(`via ${ROUTER} `) ? "refused" : "accepted",
    redirect6: (await machine.sh(`ip -6 route get ${FAR6}`)).includes(`via ${ROUTER6} dev up0 `)
      ? "refused"
      : "accepted",
    connectingToLoopback: ifArrived("connectingToLoopback", "accepted"),
    datagramToLoopback: ifArrived("datagramToLoopback", "accepted"),
    toLoopback6: ifArrived("toLoopback6", "accepted"),
    fromLoopback: ifArrived("fromLoopback", "accepted"),
    fromHost: ifArrived("fromHost", "accepted"),
    fromStranger: ifArrived("fromStranger", "arrives", "not there"),
    dhcpAnswer: ifArrived("dhcpAnswer", "arrives", "not there"),
  };
}

/** How many packets of each kind have come to the host's programs, and how many of the last kind have left by its wire. */
async function arrivedIn(machine: Machine): Promise<Record<string, number>> {
  const text = await machine.sh(
    "nft list counters table inet watch; ip netns exec world nft list counters table netdev watch",
  );
  const counted = [...text.matchAll(/counter (\w+) \{\s+packets (\d+)/g)].map((
    [, name, count],
  ) => [name, Number(count)]);
  return Object.fromEntries(counted);
}

/** Addresses and routes. Link-local ones may come late. */
async function routesOf(machine: Machine): Promise<string[]> {
  const text = await machine.sh(
    "ip -o -6 address; ip -o -4 address; ip route show table all; ip -6 route show table all",
  );
  return text.split("\n").filter((line) => !/^\S* *(fe80|ff00|multicast|anycast|local fe80)|inet6 fe80/.test(line))
    .sort();
}

export async function macOf(machine: Machine, link: string, inside?: Container): Promise<string> {
  return JSON.parse(await machine.sh(`ip -j link show ${link}`, { in: inside }))[0].address;
}
