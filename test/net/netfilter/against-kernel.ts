/**
 * In a namespace of its own: random rulesets, each asked about random packets, which are then put into a link. Prints how
 * many judgements were firm, and some that the kernel contradicted.
 */
import { closeFile, O_RDWR, openFile, writeAll } from "../../../src/ffi/files.ts";
import { libc, utf8 } from "../../../src/ffi/libc.ts";
import { NETLINK_NETFILTER, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { readAllRules } from "../../../src/ffi/all-rules.ts";
import { parseAddress } from "../../../src/net/address.ts";
import { isEqual, known, knownNumber, textOf } from "../../../src/net/netfilter/known-bytes.ts";
import { firstPacket } from "../../../src/net/netfilter/packet.ts";
import { certainFate, type Traversal, traverse } from "../../../src/net/netfilter/traversal.ts";
import { random, seedWith } from "../../support/random.ts";
import { LINK, OWN, type RandomPacket, RuleWriter } from "./random-rules.ts";

export interface Comparison {
  asked: number;
  passing: number;
  firm: number;
  /** The first few. */
  contradicted: string[];
  doubts: Record<string, number>;
}

const [kind, seed, rulesets, packets] = process.argv.slice(2) as [string, ...string[]];
seedWith(Number(seed));
const PROTOCOLS = { tcp: 6, udp: 17, icmp: 1 } as const, ICMPV6 = 58;

function run(command: string[], stdin = ""): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: utf8(stdin) });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}\n${stdin}`);
  return stdout.toString();
}

function openTun(): number {
  const TUNSETIFF = 0x400454ca, IFF_TUN = 1, IFF_NO_PI = 0x1000, fd = openFile("/dev/net/tun", O_RDWR);
  const request = new Uint8Array(40);
  request.set(utf8(LINK));
  new DataView(request.buffer).setUint16(16, IFF_TUN | IFF_NO_PI, true);
  if (libc.ioctl(fd, TUNSETIFF, request) !== 0) throw new Error("TUNSETIFF");
  return fd;
}

const protocolOf = ({ family, protocol }: RandomPacket) =>
  protocol === "icmp" && family === 6 ? ICMPV6 : PROTOCOLS[protocol];

/** With random values where rules are told nothing. */
function bytesOf(packet: RandomPacket, id: number): Uint8Array {
  const source = parseAddress(packet.source)!, destination = parseAddress(packet.destination)!;
  const number = protocolOf(packet), size = number === 6 ? 20 : 8, inner = new Uint8Array(size + 4);
  const view = new DataView(inner.buffer);
  if (packet.protocol === "icmp") inner.set([packet.family === 4 ? 8 : 128, 0, 0, 0, 0, 1, 0, 1]);
  else {
    view.setUint16(0, packet.sourcePort);
    view.setUint16(2, packet.destinationPort);
  }
  if (number === 6) inner.set([random() * 255, 1, 2, 3, 0, 0, 0, 0, 0x50, 0x02, 255, 0], 4);
  if (number === 17) view.setUint16(4, inner.length);
  const at = number === 6 ? 16 : number === 17 ? 6 : 2;
  const pseudo = packet.protocol === "icmp" && packet.family === 4
    ? []
    : [...source, ...destination, 0, 0, 0, inner.length, 0, 0, 0, number];
  view.setUint16(at, checksum(Uint8Array.from([...pseudo, ...inner])));
  const header = new Uint8Array(packet.family === 4 ? 20 : 40), head = new DataView(header.buffer);
  if (packet.family === 4) {
    header.set([
      0x45,
      random() * 64 << 2,
      0,
      header.length + inner.length,
      id >> 8,
      id & 255,
      0,
      0,
      1 + random() * 254,
      number,
    ]);
    header.set(source, 12);
    header.set(destination, 16);
    head.setUint16(10, checksum(header));
  } else {
    header.set([0x60, 0, id >> 8, id & 255, 0, inner.length, number, 1 + random() * 254]);
    header.set(source, 8);
    header.set(destination, 24);
  }
  return Uint8Array.from([...header, ...inner]);
}

function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) + (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

/** Behind all chains, whatever has come so far is noted by its number. */
const NOTES = `
table inet notes {
  set v4 { typeof ip id . meta mark; size 65535; flags dynamic; }
  set v6 { typeof ip6 flowlabel . meta mark; size 65535; flags dynamic; }
  chain passed { type filter hook prerouting priority 5000; policy drop; add @v4 { ip id . meta mark }; add @v6 { ip6 flowlabel . meta mark }; }
}`;

/** Loads it without the lines that nft refuses, such as those of a condition that contradicts another one. */
function accepted(text: string): string {
  const { exitCode, stderr } = Bun.spawnSync(["nft", "-f", "-"], { stdin: utf8(text) });
  if (exitCode === 0) return text;
  const refused = Number(/stdin:(\d+):/.exec(stderr.toString())?.[1]);
  if (!(refused > 0)) throw new Error(`${stderr}\n${text}`);
  return accepted(text.split("\n").filter((_, index) => index !== refused - 1).join("\n"));
}

/** Both families' rules, by iptables-nft. */
function throughIptables(): string {
  accepted(`flush ruleset\n${NOTES}`);
  return ([4, 6] as const).map((family) => {
    const text = writer.xtables(family);
    run([family === 4 ? "iptables-nft-restore" : "ip6tables-nft-restore"], text);
    return text;
  }).join("");
}

function throughLegacy(): string {
  return ([4, 6] as const).map((family) => {
    const text = writer.legacy(family);
    run([family === 4 ? "iptables-legacy-restore" : "ip6tables-legacy-restore"], text);
    return text;
  }).join("");
}

function newRules(): string {
  switch (kind) {
    case "of xtables":
      return throughIptables();
    case "of older tables":
      return accepted(`flush ruleset\n${NOTES}`) + throughLegacy();
    case "of both kinds":
      return accepted(`flush ruleset\n${NOTES}\n${writer.ruleset()}`) + throughLegacy();
    default:
      return accepted(`flush ruleset\n${NOTES}\n${writer.ruleset()}`);
  }
}

/** The marks of the packets that have passed, by their numbers. */
function noted(): Map<number, number> {
  const found = ["v4", "v6"].flatMap((set) => {
    const [, { set: { elem = [] } }] = JSON.parse(run(["nft", "-j", "list", "set", "inet", "notes", set])).nftables;
    return (elem as { concat: [number, number] }[]).map(({ concat }) => concat);
  });
  return new Map(found);
}

run(["ip", "link", "set", "lo", "up"]);
const tun = openTun();
run([
  "sh",
  "-ec",
  `
  ip addr add ${OWN[4]}/24 dev ${LINK}; ip -6 addr add ${OWN[6]}/64 dev ${LINK} nodad; ip link set ${LINK} up
  ip route add default dev ${LINK}; ip -6 route add default dev ${LINK}
`,
]);
const index = JSON.parse(run(["ip", "-j", "link", "show", LINK]))[0].ifindex as number;
const socket = openNetlink(NETLINK_NETFILTER);
const RTN_UNICAST = 1, RTN_LOCAL = 2;
const own = Object.values(OWN).map((address) => parseAddress(address)!.toHex());
const typeOf = (address: Uint8Array) => own.includes(address.toHex()) ? RTN_LOCAL : RTN_UNICAST;

const doubts = new Map<string, number>(), contradicted: string[] = [];
const found = { asked: 0, passing: 0, firm: 0 };
const writer = new RuleWriter(kind === "with unknown fields" || kind === "of both kinds");
for (let number = 0; number < Number(rulesets); number++) {
  const text = newRules();
  const ruleset = readAllRules((ask) => ask(socket))!;
  const drawn = Array.from({ length: Number(packets) }, () => writer.packet());
  const judged = drawn.map((packet) => {
    const first = {
      ...firstPacket({
        family: packet.family,
        source: known(parseAddress(packet.source)!),
        destination: known(parseAddress(packet.destination)!),
        protocol: protocolOf(packet),
        sourcePort: packet.sourcePort,
        destinationPort: packet.destinationPort,
      }, typeOf),
      input: { name: LINK, index },
      outputFor: (address: Uint8Array) => typeOf(address) === RTN_LOCAL ? "none" as const : { name: LINK, index },
    };
    return traverse(ruleset, first, { hook: "prerouting", before: 5000 });
  });
  for (const [id, packet] of drawn.entries()) writeAll(tun, bytesOf(packet, id + 1));
  const passed = noted();
  for (const [id, packet] of drawn.entries()) compare(packet, judged[id]!, passed.get(id + 1), text);
}
socket.close();
closeFile(tun);
const comparison: Comparison = {
  ...found,
  contradicted: contradicted.slice(0, 3),
  doubts: Object.fromEntries(doubts),
};
console.log(JSON.stringify(comparison));

/** `mark`: the packet's when it has passed. */
function compare(packet: RandomPacket, traversal: Traversal, mark: number | undefined, text: string): void {
  const fate = certainFate(traversal), really = mark === undefined ? "is dropped" : "passes";
  found.asked++;
  if (mark !== undefined) found.passing++;
  if (fate === undefined) {
    const about = traversal.doubts[0]?.about ?? "nothing";
    doubts.set(about, (doubts.get(about) ?? 0) + 1);
    return;
  }
  found.firm++;
  const marks = traversal.endings.map((ending) => ending.packet.mark);
  const isMarked = mark === undefined || marks.some((each) => isEqual(each, knownNumber(mark).value) !== "no");
  if (fate === really && isMarked) return;
  const told = `${fate} with mark ${marks.map(textOf).join(" or ")}, but it ${really} with ${mark}`;
  contradicted.push(`${JSON.stringify(packet)}: ${told}\n${text}`);
}
