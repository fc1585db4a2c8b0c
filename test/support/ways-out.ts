/**
 * What a hostile container gets to others than its neighbours on the bridge, and they to it: by routes of its own and by whole
 * frames, in both families whatever addresses its network has. The receivers' kernels count what arrives, so one way counts.
 */
import { parseAddress } from "../../src/net/address.ts";
import * as frames from "./frames.ts";
import { macOf, SENDER } from "./hostile.ts";
import type { Container, Machine } from "./machine.ts";
import { serve } from "./traffic.ts";
import { untilTrue } from "./until-true.ts";

/** Addresses of the container beside those that its network gave it, and of the host's in the world. */
const OWN = ["10.88.0.66", "fd00:8::66"], WORLD = ["192.0.2.254", "fd99::254"];
/** The next hop for IPv4, with the MAC address of the bridge: also where it has no address. */
const NOBODY = "10.88.0.254";
/** Destination ports: by a route, in a datagram; in a frame. TCP by a route has 80. */
const ROUTED = 7001, FRAMED = 7002, FROM_WORLD = 7003;
const counted = {
  routedTcp: ["tcp", 80],
  routedUdp: ["udp", ROUTED],
  framedTcp: ["tcp", FRAMED],
  framedUdp: ["udp", FRAMED],
};

export interface Ways {
  /** `bad` sends, `good` is in another network; a container `world` is behind the uplink (hostile.ts). */
  bad: Container;
  good: Container;
  /** The bridge that `bad` is on. */
  link: string;
  /** The addresses of `good`, one of each family. */
  goodAddresses: readonly [string, string];
  /** More places that the host translates to `good`'s port 80. */
  published?: readonly (readonly [address: string, port: number])[];
}

/** All that there is to arrive. */
export const everyWay: readonly string[] = [
  ...["good", "world"].flatMap((to) =>
    ["4", "6"].flatMap((family) => Object.keys(counted).map((way) => `${to}: ${way}${family}`))
  ),
  ...["4", "6"].flatMap((family) => [`bad: fromGood${family}`, `bad: fromWorld${family}`]),
].sort();

/** What of `everyWay` arrived. `isAwaited`: all of it is certain to. */
export async function arriving(machine: Machine, ways: Ways, isAwaited = false): Promise<string[]> {
  const { bad, good, link, goodAddresses, published = [] } = ways;
  const gateway = await linkLocalOf(machine, link),
    toMac = await macOf(machine, link),
    mac = await macOf(machine, "eth0", bad);
  await machine.sh(`
    ip -n bad address replace ${OWN[0]}/24 dev eth0; ip -n bad address replace ${OWN[1]}/64 dev eth0 nodad
    ip -n bad neigh replace ${NOBODY} lladdr ${toMac} dev eth0
    ip -n bad route replace default via ${NOBODY} dev eth0
    ip -n bad -6 route replace default via ${gateway} dev eth0
    ip route replace ${OWN[0]}/32 dev ${link}; ip -6 route replace ${OWN[1]}/128 dev ${link}
    ip -n world address replace ${WORLD[1]}/64 dev eth0 nodad
    ip -n world route replace 10.0.0.0/8 via 192.0.2.1
    ip -n world -6 route replace fd00::/16 via fd99::1`);
  await count(machine, "good", countersOf(counted));
  await count(machine, "world", countersOf(counted));
  await count(machine, "bad", countersOf({ fromGood: ["udp", ROUTED], fromWorld: ["udp", FROM_WORLD] }));
  // A sender that does not know a neighbour's MAC address yet keeps packets back.
  await reach(machine, undefined, [...OWN, ...WORLD, ...goodAddresses]);
  await using server = await serve(machine, good, "tcp", 80);
  const targets = [...goodAddresses, ...WORLD];
  await server.askAll(bad, [...targets.map((address) => [address, 80] as const), ...published]);
  const whole = targets.flatMap((destination) => {
    const ends = { from: mac, to: toMac, source: OWN[parseAddress(destination)!.length === 4 ? 0 : 1]!, destination };
    return [frames.datagram(ends, 5555, FRAMED), frames.connecting(ends, 5555, FRAMED)];
  });
  await machine.sh(`
    ${targets.map((address) => datagram("bad", address, ROUTED)).join("\n")}
    ip netns exec bad ${SENDER} eth0 ${whole.join(" ")}
    ${
    OWN.map((address) => `${datagram("good", address, ROUTED)}\n${datagram("world", address, FROM_WORLD)}`).join("\n")
  }`);
  // What is sent later on the same ways has come.
  await reach(machine, bad, [`${gateway}%eth0`]);
  await reach(machine, good, WORLD);
  await reach(machine, machine.containers.find(({ name }) => name === "world"), goodAddresses);
  const look = async () => {
    const lists = await Promise.all(["good", "world", "bad"].map((name) => arrivedAt(machine, name)));
    return lists.flat().sort();
  };
  return isAwaited ? await untilTrue(look, (found) => found.length === everyWay.length) : await look();
}

/** A datagram from the namespace, by its own routes. Where it has none, nothing is sent. */
function datagram(namespace: string, address: string, port: number): string {
  return `ip netns exec ${namespace} bash -c 'echo hello > /dev/udp/${address}/${port}' || true`;
}

async function reach(machine: Machine, from: Container | undefined, addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    await untilTrue(() => machine.run(["ping", "-nqc1", "-W1", address], { in: from }), ({ code }) => code === 0);
  }
}

function countersOf(what: Record<string, readonly (string | number)[]>): string[] {
  return Object.entries(what).flatMap(([name, [protocol, port]]) =>
    ["4", "6"].map((family) => `${name}${family} meta nfproto ipv${family} ${protocol} dport ${port}`)
  );
}

/** Begins again at none. */
async function count(machine: Machine, namespace: string, counters: readonly string[]): Promise<void> {
  const rules = counters.map((each) => each.split(" ")).map(([name, ...match]) => ({ name, match: match.join(" ") }));
  await machine.sh(`ip netns exec ${namespace} nft -f - <<END
    table inet arrived
    delete table inet arrived
    table inet arrived {
      ${rules.map(({ name }) => `counter ${name} { }`).join("\n")}
      chain prerouting {
        type filter hook prerouting priority -300;
        ${rules.map(({ name, match }) => `${match} counter name ${name}`).join("\n")}
      }
    }
END`);
}

async function arrivedAt(machine: Machine, namespace: string): Promise<string[]> {
  const text = await machine.sh(`ip netns exec ${namespace} nft list counters table inet arrived`);
  const found = [...text.matchAll(/counter (\w+) \{\s+packets (\d+)/g)];
  return found.filter(([, , packets]) => packets !== "0").map(([, name]) => `${namespace}: ${name}`);
}

async function linkLocalOf(machine: Machine, link: string): Promise<string> {
  const look = () => machine.sh(`ip -6 -o address show dev ${link} scope link`);
  // It comes with the bridge's carrier.
  return /inet6 (fe80[^/]*)/.exec(await untilTrue(look, (found) => found.includes("fe80")))![1]!;
}
