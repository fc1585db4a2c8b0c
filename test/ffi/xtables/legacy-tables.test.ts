/** iptables' older tables: what iptables-legacy has written is read in the words of rules, and reading makes no table. */
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { readAllRules } from "../../../src/ffi/all-rules.ts";
import * as files from "../../../src/ffi/files.ts";
import { NETLINK_NETFILTER, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { inNetns, openNetns, openOwnNetns } from "../../../src/ffi/netns.ts";
import * as sockets from "../../../src/ffi/socket/socket.ts";
import { legacyChains } from "../../../src/ffi/xtables/legacy-chains.ts";
import { legacyTableNames, readLegacyTables } from "../../../src/ffi/xtables/legacy-tables.ts";
import { known } from "../../../src/net/netfilter/known-bytes.ts";
import { firstPacket } from "../../../src/net/netfilter/packet.ts";
import type { Operation } from "../../../src/net/netfilter/ruleset.ts";
import { traverse } from "../../../src/net/netfilter/traversal.ts";
import { type Machine, openMachine } from "../../support/machine.ts";

let machine: Machine;
beforeAll(async () => void (machine = await openMachine()));
afterAll(() => machine[Symbol.asyncDispose]());

function inMachine<T>(work: () => T, { pid }: Machine = machine): T {
  return files.whileOpen(
    openNetns(`/proc/${pid}/ns/net`),
    (netns) => files.whileOpen(openOwnNetns(), (home) => inNetns(netns, home, work)),
  );
}

const chainsOf = () => inMachine(() => readLegacyTables().flatMap(legacyChains));
const names = () => [...legacyTableNames(4), "and", ...legacyTableNames(6)].join(" ");

function textOf(operation: Operation): string {
  switch (operation.does) {
    case "payload":
      return `${operation.base} ${operation.offset}+${operation.length}`;
    case "meta":
      return operation.key;
    case "mask":
      return `& ${operation.mask.toHex()}`;
    case "compare":
      return `${operation.how} ${operation.value.toHex()}`;
    case "verdict":
      return Object.values(operation.verdict).join(" ");
    case "match":
    case "target":
      return `${operation.does} ${operation.name} ${operation.revision} ${
        bytesOf(operation.info).toHex().replace(/(00)+$/, "")
      }`;
    default:
      return operation.does;
  }
}

const name = (text: string) => Buffer.from(text).toString("hex").padEnd(32, "0");
const ones = (count: number, of = 16) => "ff".repeat(count).padEnd(2 * of, "0");

test.each<[family: 4 | 6, rule: string, operations: string]>([
  [4, "", "continue"],
  [4, "-j ACCEPT", "accept"],
  [4, "-j DROP", "drop"],
  [4, "-j RETURN", "return"],
  [4, "-j OTHER", "jump OTHER"],
  [4, "-g OTHER", "goto OTHER"],
  [6, "-j OTHER", "jump OTHER"],
  [6, "-g OTHER", "goto OTHER"],
  [4, "-s 10.9.0.0/17 -j DROP", "network 12+4, & ffff8000, == 0a090000, drop"],
  [4, "! -d 10.9.0.1 -j DROP", "network 16+4, != 0a090001, drop"],
  [4, "-d 10.0.9.0/255.0.255.0 -j DROP", "network 16+4, & ff00ff00, == 0a000900, drop"],
  [6, "! -s fd00::/8", `network 8+16, & ${ones(1)}, != ${"fd".padEnd(32, "0")}, continue`],
  [6, "-d fd00::1", `network 24+16, == ${"fd".padEnd(31, "0")}1, continue`],
  [4, "-i eth0", `iifname, & ${ones(5)}, == ${name("eth0")}, continue`],
  [4, "! -i eth+", `iifname, & ${ones(3)}, != ${name("eth")}, continue`],
  [6, "-o br-0123456789ab", `oifname, == ${name("br-0123456789ab")}, continue`],
  [4, "-i +", "continue"],
  [4, "-p tcp", "l4proto, == 0600, continue"],
  [4, "! -p 47", "l4proto, != 2f00, continue"],
  [6, "-p icmpv6", "l4proto, == 3a00, continue"],
  [6, "! -p udp", "l4proto, != 1100, continue"],
  [4, "-f", "network 6+2, & 1fff, != 0000, continue"],
  [4, "! -f", "network 6+2, & 1fff, == 0000, continue"],
  [4, "-p udp --dport 53:54", "l4proto, == 1100, match udp 0 0000ffff350036, continue"],
  [
    6,
    "-m mark --mark 1/3 -m comment --comment hi -j LOG",
    "match mark 1 0100000003, match comment 0 6869, target LOG 0 04",
  ],
  [4, "-j REJECT --reject-with icmp-host-unreachable", "target REJECT 0 01"],
])("IPv%d: iptables -A FORWARD %s", async (family, rule, operations) => {
  const tool = family === 4 ? "iptables-legacy" : "ip6tables-legacy";
  await machine.sh(
    `${tool} -F; ${tool} -N OTHER 2>/dev/null || true; ${tool} -A FORWARD -j ACCEPT; ${tool} -A FORWARD ${rule}`,
  );
  const chain = chainsOf().find(({ family: of, name }) =>
    of === (family === 4 ? "ip" : "ip6") && name === "FORWARD"
  )!;
  expect(chain.rules.map(({ handle }) => handle)).toEqual([1n, 2n]);
  expect(chain.rules[1]!.operations.map(textOf).join(", ")).toBe(operations);
});

test("chains are where the kernel calls them, with their policies; others are named", async () => {
  await using machine = await openMachine();
  for (const table of ["raw", "mangle", "nat", "filter", "security"]) {
    await machine.sh(`iptables-legacy -t ${table} -N own`);
  }
  await machine.sh("iptables-legacy -P FORWARD DROP");
  const found = inMachine(() => readLegacyTables().flatMap(legacyChains), machine);
  const texts = found.map(({ family, table, name, base, isLegacy }) =>
    `${isLegacy} ${family} ${table} ${name} ${base && `${base.priority} ${base.type} ${base.policy}`}`
  );
  expect(texts.toSorted()).toEqual(
    `
    filter INPUT 0 filter accept, filter FORWARD 0 filter drop, filter OUTPUT 0 filter accept, filter own undefined,
    mangle PREROUTING -150 filter accept, mangle INPUT -150 filter accept, mangle FORWARD -150 filter accept,
    mangle OUTPUT -150 route accept, mangle POSTROUTING -150 filter accept, mangle own undefined,
    nat PREROUTING -100 nat accept, nat INPUT 100 nat accept, nat OUTPUT -100 nat accept,
    nat POSTROUTING 100 nat accept, nat own undefined,
    raw PREROUTING -300 filter accept, raw OUTPUT -300 filter accept, raw own undefined,
    security INPUT 50 filter accept, security FORWARD 50 filter accept, security OUTPUT 50 filter accept,
    security own undefined`.split(",").map((line) => `true ip ${line.trim()}`).toSorted(),
  );
});

test("no table comes into being, and without tables only two files are read", async () => {
  await using machine = await openMachine();
  const spies = [spyOn(sockets, "openSocket"), spyOn(files, "readTextFile")];
  try {
    expect(inMachine(() => [readLegacyTables(), names()], machine)).toEqual([[], "and"]);
    expect(spies[0]).toHaveBeenCalledTimes(0);
    expect(spies[1]!.mock.calls.slice(0, -2)).toEqual([
      ["/proc/thread-self/net/ip_tables_names"],
      ["/proc/thread-self/net/ip6_tables_names"],
    ]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  await machine.sh("ip6tables-legacy -t raw -S");
  expect(inMachine(() => [readLegacyTables().map(({ name }) => name), names()], machine)).toEqual([
    ["raw"],
    "and raw",
  ]);
});

const packet = {
  ...firstPacket({
    family: 4,
    source: known(Uint8Array.of(10, 9, 0, 2)),
    destination: known(Uint8Array.of(10, 9, 0, 1)),
    protocol: 17,
  }, () => undefined),
  input: { name: "lo", index: 1 },
};

/** What it marks first stays. */
const NFT = `add table ip young; add chain ip young forward { type filter hook forward priority -150; };
  add rule ip young forward meta mark 0 meta mark set 1`;
const LEGACY = "iptables-legacy -t mangle -A FORWARD -m mark --mark 0 -j MARK --set-mark 2";

test.each([
  [[NFT, LEGACY]],
  [[LEGACY, NFT]],
])("which of two kinds at one priority is called first, nobody tells: %s", async (commands) => {
  await using machine = await openMachine();
  for (const command of commands) await machine.sh(command === NFT ? `nft '${command}'` : command);
  const marks = inMachine(() => {
    const socket = openNetlink(NETLINK_NETFILTER);
    try {
      const rules = readAllRules((ask) => ask(socket))!;
      return traverse(rules, packet, { hook: "forward" }).endings.map(({ packet: { mark } }) => mark.value[0]!);
    } finally {
      socket.close();
    }
  }, machine);
  expect(marks.toSorted()).toEqual([1, 2]);
});

function bytesOf({ buffer, byteOffset, byteLength }: DataView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
