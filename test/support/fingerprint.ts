/**
 * One number for everything a snapshot shows of a machine, at a tenth of its cost, since the sweeps look thousands of
 * times. Two equal numbers: nothing has changed. Two different ones prove nothing; then the snapshot says what it is.
 *
 * It is made of the kernel's dumps as they come, without the attributes that change by themselves. They are asked for
 * here and not through the program's own netlink, which is what the tests judge.
 */
import { type Dirent, readdirSync } from "node:fs";
import { closeFile, O_RDONLY } from "../../src/ffi/files.ts";
import { check, libc } from "../../src/ffi/libc.ts";
import { inNetns, openNetns, openOwnNetns } from "../../src/ffi/netns.ts";
import { textOf } from "./if-there.ts";
import { type Machine, netnsFromOutside } from "./machine.ts";
import { align, attributesIn, DumpSocket, InterruptedDump, leaveOut, type LeftOut } from "./netlink-dump.ts";

/** Undefined where only the snapshot tells: rate limits, legacy iptables, a namespace that is gone, or a dump cut short. */
export function fingerprint(machine: Machine): string | undefined {
  const root = `/proc/${machine.pid}/root`, hash = new Bun.CryptoHasher("sha1");
  const namespaces = [
    `/proc/${machine.pid}/ns/net`,
    ...machine.containers.map((container) => netnsFromOutside(machine.pid, container)),
  ];
  try {
    for (const path of namespaces) inside(path, () => addNamespace(hash));
    for (const line of [...filesUnder(root), ...assignTypes(`${root}/sys/class/net`)]) hash.update(`${line}\n`);
    return hash.digest("hex");
  } catch (error) {
    if (error instanceof Untold || error instanceof InterruptedDump) return undefined;
    throw error;
  }
}

/** The fingerprint does not tell about this machine. */
class Untold extends Error {}

type Hash = Bun.CryptoHasher;

function inside(path: string, look: () => void): void {
  const home = openOwnNetns();
  try {
    const netns = openNamespace(path);
    try {
      inNetns(netns, home, look);
    } finally {
      closeFile(netns);
    }
  } finally {
    closeFile(home);
  }
}

function openNamespace(path: string): number {
  try {
    return openNetns(path);
  } catch {
    throw new Untold();
  }
}

function addNamespace(hash: Hash): void {
  for (const name of ["ip_tables_names", "ip6_tables_names"]) {
    if (textOf(`/proc/thread-self/net/${name}`) !== "") throw new Untold();
  }
  addRoutes(hash);
  addRules(hash);
  for (const path of sysctls) hash.update(valueOf(path));
}

/** The switches of each link are in the dump of links. */
const sysctls = [
  "ipv4/ip_forward",
  ...["ipv4/conf/all", "ipv4/conf/default", "ipv6/conf/all", "ipv6/conf/default"].flatMap((directory) =>
    readdirSync(`/proc/sys/net/${directory}`).filter((name) => name !== "stable_secret")
      .map((name) => `${directory}/${name}`)
  ),
].map((path) => new TextEncoder().encode(`/proc/sys/net/${path}\0`));

/** There are hundreds of them, so without what node:fs does on top. */
function valueOf(path: Uint8Array): Uint8Array {
  const fd = check("open", libc.open(path, O_RDONLY, 0));
  const length = check("read", Number(libc.read(fd, value, value.length)));
  libc.close(fd);
  return value.subarray(0, length);
}

const value = new Uint8Array(4096);

function* filesUnder(root: string): Generator<string> {
  const waiting = [`${root}/run`, `${root}/var/lib`];
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    if (directory === `${root}/run/netns` || directory === `${root}/run/mount`) continue;
    const entries = entriesOf(directory);
    for (const entry of entries.sort((one: Dirent, other: Dirent) => one.name < other.name ? -1 : 1)) {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) waiting.push(path);
      else yield path;
    }
  }
}

function* assignTypes(directory: string): Generator<string> {
  for (const link of readdirSync(directory).sort()) {
    yield `${link} ${textOf(`${directory}/${link}/addr_assign_type`)}`;
  }
}

const BRIDGE_PORT_TIMERS: LeftOut = { 21: true, 22: true, 23: true };
/** Topology changes, timers, the state of the multicast querier. Other kinds of links have none by these numbers. */
const BRIDGE_TIMERS: LeftOut = { 14: true, 15: true, 16: true, 17: true, 18: true, 19: true, 46: true };
/** IFLA_AF_SPEC, AF_INET6: whether the link is ready, cacheinfo, statistics. */
const INET6: LeftOut = { 1: true, 3: true, 5: true, 6: true };
const LINK: LeftOut = {
  // Statistics, what follows from the carrier, and how often it came and went.
  7: true,
  16: true,
  23: true,
  33: true,
  35: true,
  47: true,
  48: true,
  18: { 2: BRIDGE_TIMERS, 3: true, 5: BRIDGE_PORT_TIMERS },
  26: { 10: INET6 },
};

const NETLINK_ROUTE = 0, NETLINK_NETFILTER = 12;
const AF_BRIDGE = 7;
const COMPRESSED_VLANS = Uint8Array.of(8, 0, 29, 0, 4, 0, 0, 0);

/** rtnetlink(7): links, bridge VLANs, addresses, routes, permanent neighbours, rules. */
function addRoutes(hash: Hash): void {
  const socket = new DumpSocket(NETLINK_ROUTE);
  try {
    const add = (message: Uint8Array) => void hash.update(message);
    const addLink = (message: Uint8Array) => {
      clear(message, IFI_FLAGS, IFF_RUNNING | IFF_LOWER_UP);
      add(message);
    };
    socket.dump(18, new Uint8Array(16), 16, LINK, addLink);
    const bridge = new Uint8Array(24);
    bridge[0] = AF_BRIDGE;
    bridge.set(COMPRESSED_VLANS, 16);
    socket.dump(18, bridge, 16, { 12: BRIDGE_PORT_TIMERS, 16: true, 33: true }, addLink);
    socket.dump(22, new Uint8Array(8), 8, {}, (message) => {
      if (message[IFA_SCOPE] === RT_SCOPE_LINK) leaveOutState(message);
      add(message);
    });
    socket.dump(26, new Uint8Array(12), 12, { 12: true }, (message) => {
      clear(message, RTM_FLAGS, RTNH_F_DEAD | RTNH_F_LINKDOWN);
      if (!isOfLinkLocal(message)) add(message);
    });
    socket.dump(30, new Uint8Array(12), 12, { 3: true, 4: true }, (message) => {
      if ((message[NDM_STATE]! & NUD_PERMANENT) !== 0) add(message);
    });
    socket.dump(34, new Uint8Array(12), 12, {}, add);
    socket.dump(38, new Uint8Array(20), 20, {}, (message) => {
      // Somebody made it, and classes and filters may hang below.
      if (message.subarray(TCM_HANDLE, TCM_HANDLE + 4).some((byte) => byte !== 0)) throw new Untold();
    });
  } finally {
    socket.close();
  }
}

/** Where fields are in messages: ifinfomsg, ifaddrmsg, rtmsg, ndmsg, tcmsg behind the header. */
const IFI_FLAGS = 16 + 8, IFA_FLAGS = 16 + 2, IFA_SCOPE = 16 + 3, RTM_TYPE = 16 + 7, RTM_FLAGS = 16 + 8;
const NDM_STATE = 16 + 8, TCM_HANDLE = 16 + 8;
const IFF_RUNNING = 0x40, IFF_LOWER_UP = 0x10000, RTNH_F_DEAD = 1, RTNH_F_LINKDOWN = 16, NUD_PERMANENT = 0x80;
const RT_SCOPE_LINK = 253, RTN_LOCAL = 2, RTN_ANYCAST = 4;

function clear(message: Uint8Array, at: number, bits: number): void {
  for (let index = 0; index < 4; index++) message[at + index]! &= ~(bits >>> (8 * index));
}

/** The kernel makes link-local addresses, and looks for duplicates late: flags, as a byte and as an attribute. */
function leaveOutState(address: Uint8Array): void {
  address[IFA_FLAGS] = 0;
  leaveOut(address, 16 + 8, address.length, { 6: true, 8: true });
}

/** The kernel's routes to itself by link-local addresses come as late. */
function isOfLinkLocal(route: Uint8Array): boolean {
  if (route[RTM_TYPE] !== RTN_LOCAL && route[RTM_TYPE] !== RTN_ANYCAST) return false;
  const [destination] = [...attributesIn(route, 16 + 12, route.length)].filter(({ type }) => type === 1);
  return destination !== undefined && route[destination.start + 4] === 0xfe && route[destination.start + 5] === 0x80;
}

/** nf_tables: tables, chains, rules, sets with their elements, objects, flow tables. */
function addRules(hash: Hash): void {
  const socket = new DumpSocket(NETLINK_NETFILTER);
  try {
    const add = (message: Uint8Array) => {
      // The generation of all rules, in nfgenmsg.
      message.fill(0, 18, 20);
      hash.update(message);
    };
    const ask = (type: number, leftOut: LeftOut, each: (message: Uint8Array) => void) =>
      socket.dump(NF_TABLES | type, new Uint8Array(4), 4, leftOut, each);
    const sets: Uint8Array[] = [];
    ask(1, {}, add);
    ask(4, { 8: true }, add);
    ask(7, {}, (message) => {
      leaveOutCounters(message);
      add(message);
    });
    ask(10, {}, (message) => {
      sets.push(message.slice());
      add(message);
    });
    ask(19, {}, add);
    ask(23, {}, add);
    for (const set of sets) addElements(hash, socket, set);
  } finally {
    socket.close();
  }
}

const NF_TABLES = 10 << 8;
const SET_TABLE = 1, SET_NAME = 2;

function addElements(hash: Hash, socket: DumpSocket, set: Uint8Array): void {
  const [table, name] = [SET_TABLE, SET_NAME].map((wanted) =>
    [...attributesIn(set, 20, set.length)].find(({ type }) => type === wanted)!
  );
  // The attributes have the same numbers in the question as in the set.
  const question = new Uint8Array(4 + align(table!.end - table!.start) + align(name!.end - name!.start));
  question[0] = set[16]!;
  question.set(set.subarray(table!.start, table!.end), 4);
  question.set(set.subarray(name!.start, name!.end), 4 + align(table!.end - table!.start));
  const elements: string[] = [];
  socket.dump(NF_TABLES | 13, question, 4, {}, (message) => {
    for (const list of attributesIn(message, 20, message.length)) {
      if (list.type !== 3) continue;
      for (const { start, end } of attributesIn(message, list.start + 4, list.end)) {
        elements.push(message.subarray(start, end).toHex());
      }
    }
  });
  // The order in a hash table has no meaning.
  for (const element of elements.sort()) hash.update(element);
}

/** Packets and bytes of the expression `counter`: NFTA_RULE_EXPRESSIONS, NFTA_LIST_ELEM, name and data. */
function leaveOutCounters(rule: Uint8Array): void {
  for (const list of attributesIn(rule, 20, rule.length)) {
    if (list.type !== 4) continue;
    for (const expression of attributesIn(rule, list.start + 4, list.end)) {
      const [name, data] = [...attributesIn(rule, expression.start + 4, expression.end)];
      const isCounter = rule.subarray(name!.start + 4, name!.end - 1).toString() === COUNTER;
      if (isCounter && data !== undefined) rule.fill(0, data.start + 4, data.end);
    }
  }
}

const COUNTER = new TextEncoder().encode("counter").toString();

/** An engine may remove the directory meanwhile. */
function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if ((error as { code?: string }).code !== "ENOENT") throw error;
    return [];
  }
}
