/**
 * A host between the world and containers. Every place serves and remembers which datagrams it has heard, and a sender
 * goes more ways than the usual one: what a container with NET_ADMIN routes by a gateway or by a link-local address is a
 * frame to the MAC address of that link. So it sends each datagram to every MAC address of the host's, to the receiver's
 * and to everybody, with and without tags, also in a family in which it has no address.
 */
import { resolve } from "node:path";
import { BROADCAST, datagram } from "../frames.ts";
import { type Machine, openMachine } from "../machine.ts";
import { allProtocols, type Question } from "../traffic.ts";
import { type Cell, families, type Family, type Row } from "./matrix.ts";
import type { Errand, Namespaces } from "./prober.ts";

const PROBER = [process.execPath, resolve(import.meta.dir, "prober.ts")];

/** Everybody serves on this one. */
export const PORT = 7;
/** The host's ports; each leads to PORT of the place. */
export const hostPorts: Readonly<Record<string, number>> = { a: 8082, b: 8080, c: 8081 };

type Addresses = Partial<Record<Family, string>>;

/** Towards the world. */
const HOST: Addresses = { 4: "192.0.2.1", 6: "2001:db8::1" };
const OUT: Addresses = { 4: "192.0.2.2", 6: "2001:db8::2" };
const LOOPBACK: Addresses = { 4: "127.0.0.1", 6: "::1" };
/**
 * Before the protocol, in hex: nothing, and tags of VLAN 0, which a receiver takes off. The rules may be asked
 * about other frames than theirs.
 */
const TAGS = ["", "81000000", "88a80000", "8100000081000000"];
/** So many digits of a frame have both addresses. */
const MACS = 24;

/** For who has none in the family. */
const MADE_UP = { 4: "10.66.0.66", 6: "fd66::66" };
const SOURCE_PORT = 5555;
/** The kernel needs milliseconds, but its work waits for a processor on a busy machine; a virtual one does not see how busy. */
const SETTLING_MS = 120_000;

/** A place as its kernel shows it. */
interface Place {
  linkIndex: number;
  mac: string;
  addresses: Addresses;
  /** All its links have these. */
  macs: string[];
  allAddresses: string[];
}

/** What got through: by the ways' names the protocols that were answered, and "frame" when one of them was heard. */
type Through = Map<string, Set<string>>;

export interface Town extends AsyncDisposable {
  machine: Machine;
  /** By which link a place sends; eth0 where nothing is said. */
  links: Record<string, string>;
  /** Nothing is taken back. */
  through: Through;
}

/** The link towards the world is `up0` on the host, and `eth0` in `out`. */
export async function openTown(places: readonly string[]): Promise<Town> {
  const machine = await openMachine();
  for (const name of ["out", ...places]) await machine.container(name);
  // Nobody is told of a shorter way than over the host, and nobody but the host forwards.
  await machine.sh(`
    settings="net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=0 \
      net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
      net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.default.accept_redirects=0 \
      net.ipv6.conf.default.accept_redirects=0"
    sysctl -qw $settings
    for each in out ${places.join(" ")}; do ip netns exec $each sysctl -qw $settings; done
    for key in /proc/sys/net/bridge/bridge-nf-call-ip*tables; do [ ! -e $key ] || echo 0 > $key; done
    ip link add up0 type veth peer name eth0 netns out
    ip link set up0 up; ip -n out link set eth0 up
    ip address add ${HOST[4]}/24 dev up0; ip address add ${HOST[6]}/64 dev up0 nodad
    ip -n out address add ${OUT[4]}/24 dev eth0; ip -n out address add ${OUT[6]}/64 dev eth0 nodad
    ip -n out route add default via ${HOST[4]}; ip -n out route add default via ${HOST[6]}`);
  const through: Through = new Map(), server = await startServer(machine, through);
  return {
    machine,
    links: {},
    through,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await machine[Symbol.asyncDispose]();
    },
  };
}

function namespacesOf({ pid, containers }: Machine): Namespaces {
  const own = containers.map(({ name, netnsPath }) => [name, netnsPath]);
  return { host: `/proc/${pid}/ns/net`, ...Object.fromEntries(own) };
}

async function startServer(machine: Machine, through: Through): Promise<AsyncDisposable> {
  const process = machine.start([...PROBER, "serve", String(PORT), JSON.stringify(namespacesOf(machine))]);
  const { promise: ready, resolve: isReady, reject } = Promise.withResolvers<void>();
  const listening = (async () => {
    let rest = "";
    for await (const text of process.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === "ready") isReady();
        const [at, way] = line.split(" ");
        if (way !== undefined && at === placeOf(way)) note(through, way, "frame");
      }
    }
    reject(new Error(`no server: ${await process.stderr.text()}`));
  })();
  await ready;
  return {
    async [Symbol.asyncDispose]() {
      await process.stdin.end();
      await listening;
      await process.exited;
    },
  };
}

function note(through: Through, way: string, what: string) {
  through.set(way, (through.get(way) ?? new Set()).add(what));
}

const nameOf = (from: string, to: string, family: Family) => `${from}>${to}/${family}`;
/** Where it ends. */
const placeOf = (way: string) => way.split(/[>:/]/)[1];

function waysOf(row: Row) {
  return row.ways.flatMap(([from, to, ...only]) =>
    (only.length > 0 ? only : families).map((family) => ({ from, to, family, name: nameOf(from, to, family) }))
  );
}

/** Sends what is in the rows until all that should get through does, and returns what ever did. */
export async function cellsFound(town: Town, rows: readonly Row[], expected: readonly Cell[]): Promise<string[]> {
  const deadline = performance.now() + SETTLING_MS;
  for (;;) {
    const isLate = performance.now() > deadline;
    await sendAll(town, rows);
    const found = rows.map((row) => cellOf(town.through, row));
    const lacks = (cell: string, index: number) => !["no", cell].includes(expected[index]!) && cell !== "yes";
    if (isLate || !found.some(lacks)) return found;
  }
}

async function sendAll({ machine, links, through }: Town, rows: readonly Row[]): Promise<void> {
  const places = await placesOf(machine, links);
  const errand: Errand = { namespaces: namespacesOf(machine), questions: [], frames: [] }, asked: string[] = [];
  for (const { from, to, family, name } of rows.flatMap(waysOf)) {
    const sender = places.get(from)!, target = targetOf(to, family, places, sender);
    if (sender.addresses[family] !== undefined) {
      errand.questions.push(
        ...allProtocols.map((protocol): Errand["questions"][0] => ({ from, protocol, ...target })),
      );
      asked.push(...allProtocols.map(() => name));
    }
    if (from === "host") continue;
    const macs = new Set([...places.get("host")!.macs, ...places.get(placeOf(name)!)!.macs, BROADCAST]);
    const source = sender.addresses[family] ?? MADE_UP[family];
    const datagrams = [...macs].map((to) =>
      datagram(
        { from: sender.mac, to, source, destination: target.address },
        SOURCE_PORT,
        target.port,
        new TextEncoder().encode(name),
      )
    );
    const frames = datagrams.flatMap((frame) => TAGS.map((tag) => frame.slice(0, MACS) + tag + frame.slice(MACS)));
    errand.frames.push({ from, linkIndex: sender.linkIndex, frames });
  }
  const { code, stdout, stderr } = await machine.run([...PROBER, "ask"], { stdin: JSON.stringify(errand) });
  if (code !== 0) throw new Error(`the prober failed: ${stderr}`);
  (JSON.parse(stdout) as (string | null)[]).forEach((answer, index) => {
    if (answer !== null) note(through, asked[index]!, errand.questions[index]!.protocol);
  });
}

function targetOf(
  to: string,
  family: Family,
  places: Map<string, Place>,
  sender: Place,
): Pick<Question, "address" | "port"> {
  const [place, how] = to.split(":") as [string, string?], { addresses, allAddresses } = places.get(place)!;
  if (how !== undefined) return { address: (how === "port" ? HOST : LOOPBACK)[family]!, port: hostPorts[place]! };
  // Who has several addresses answers datagrams from the one in the sender's network.
  const [network = "nowhere"] = sender.addresses[family]?.match(family === 4 ? /.*\./ : /.*:/) ?? [];
  const address = allAddresses.find((own) => own.startsWith(network)) ?? addresses[family];
  if (address === undefined) throw new Error(`${to} has no IPv${family} address`);
  return { address, port: PORT };
}

interface ListedLink {
  ifindex: number;
  ifname: string;
  address?: string;
  addr_info: { local: string; scope: string; family: "inet" | "inet6" }[];
}

async function placesOf(machine: Machine, links: Record<string, string>): Promise<Map<string, Place>> {
  const names = machine.containers.map(({ name }) => name);
  const listed = await machine.sh(
    `ip -j address show; for each in ${names.join(" ")}; do echo; ip -n $each -j address show; done`,
  );
  const parts = listed.split("\n").filter(Boolean).map((text) => JSON.parse(text) as ListedLink[]);
  return new Map(["host", ...names].map((name, index) => {
    const found = parts[index]!, link = found.find(({ ifname }) => ifname === (links[name] ?? "eth0"));
    const addressOf = (wanted: string) =>
      link?.addr_info.find(({ family, scope }) => family === wanted && scope === "global")?.local;
    const addresses = name === "host" ? HOST : { 4: addressOf("inet"), 6: addressOf("inet6") };
    const macs = found.flatMap(({ address = "" }) =>
      /[1-9a-f]/.test(address) && address.length === 17 ? [address] : []
    );
    const allAddresses = found.flatMap(({ addr_info }) => addr_info.map(({ local }) => local));
    return [name, { linkIndex: link?.ifindex ?? 0, mac: link?.address ?? "", addresses, macs, allAddresses }];
  }));
}

/** A cell, or what differs between its ways. */
function cellOf(through: Through, row: Row): string {
  const found = waysOf(row).map(({ from, name }) => {
    const got = through.get(name) ?? new Set(), answered = allProtocols.filter((protocol) => got.has(protocol));
    const isHeard = got.has("frame");
    if (answered.length === 0) return { name, cell: isHeard ? "one way" : "no" };
    const isWhole = answered.length === allProtocols.length && (isHeard || from === "host");
    return { name, cell: isWhole ? "yes" : [...got].join(" and ") };
  });
  if (found.every(({ cell }) => cell === found[0]!.cell)) return found[0]!.cell;
  return found.map(({ name, cell }) => `${name} ${cell}`).join(", ");
}
