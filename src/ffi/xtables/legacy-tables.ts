/**
 * The older tables of iptables, those of ip_tables and ip6_tables (linux/netfilter_ipv4/ip_tables.h), of this thread's
 * network namespace. Each is read at once, but not together with the others.
 *
 * A question about a table that the namespace does not have would make it, for good. So only those are asked for that it
 * lists.
 */
import { EAGAIN, SyscallError } from "../errno.ts";
import { readTextFile, whileOpen } from "../files.ts";
import { check, cString, lastErrno, libc } from "../libc.ts";
import { AF_INET, AF_INET6, openSocket, SOCK_DGRAM } from "../socket/socket.ts";

/** Where an entry begins, with its parts as the structs have them; what the kernel counted is 0. */
export interface LegacyEntry {
  at: number;
  /** From here on. */
  bytes: DataView<ArrayBuffer>;
  targetAt: number;
  length: number;
}

export interface LegacyTable {
  family: 4 | 6;
  name: string;
  /** By the numbers of enum nf_inet_hooks: where the first entry of a hook is, and the one that is its policy. */
  hooks: { number: number; first: number; policy: number }[];
  entries: LegacyEntry[];
  /** All that the kernel has told of it. */
  answer: Uint8Array;
}

const SOL_IP = 0, SOL_IPV6 = 41, IPT_SO_GET_INFO = 64, IPT_SO_GET_ENTRIES = 65;
/** struct ipt_getinfo: the name, which hooks there are, where they begin and end, how many entries, and their size. */
const NAME_BYTES = 32, INFO_BYTES = 84, HOOKS_AT = 32, FIRST_AT = 36, POLICY_AT = 56, SIZE_AT = 80;
const NF_INET_NUMHOOKS = 5, COUNTERS_BYTES = 16;
/** struct ipt_get_entries, up to the entries. */
const ENTRIES_AT = 40;
/** struct ipt_entry and ip6t_entry. */
const PLACES = {
  4: { family: AF_INET, level: SOL_IP, targetOffset: 88, nextOffset: 90, counters: 96 },
  6: { family: AF_INET6, level: SOL_IPV6, targetOffset: 140, nextOffset: 142, counters: 152 },
} as const;

/**
 * Lists the older tables of this thread's namespace; /proc/net is about the process's first thread. The file exists only
 * with the tables' modules. A table that was used once stays listed until the machine restarts, even when it is empty.
 */
export function legacyTablesFile(family: 4 | 6): string {
  return `/proc/thread-self/net/${family === 4 ? "ip" : "ip6"}_tables_names`;
}

export function legacyTableNames(family: 4 | 6): string[] {
  return (readTextFile(legacyTablesFile(family)) ?? "").split("\n").filter((name) => name !== "");
}

/** Throws SyscallError, also when a table never stood still while it was read. */
export function readLegacyTables(): LegacyTable[] {
  return ([4, 6] as const).flatMap((family) => {
    const names = legacyTableNames(family);
    if (names.length === 0) return [];
    // Any socket of the family will do; a raw one would need CAP_NET_RAW.
    const socket = openSocket("socket", PLACES[family].family, SOCK_DGRAM);
    return whileOpen(socket, () => names.map((name) => readTable(socket, family, name)));
  });
}

const ATTEMPTS = 5;

function readTable(socket: number, family: 4 | 6, name: string): LegacyTable {
  const { level } = PLACES[family], info = new DataView(new ArrayBuffer(INFO_BYTES));
  const ask = (option: number, answer: DataView) => {
    new Uint8Array(answer.buffer).set(cString(name).subarray(0, NAME_BYTES));
    return libc.getsockopt(socket, level, option, new Uint8Array(answer.buffer), Int32Array.of(answer.byteLength));
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    check("getsockopt IPT_SO_GET_INFO", ask(IPT_SO_GET_INFO, info), name);
    const size = info.getUint32(SIZE_AT, true), table = new DataView(new ArrayBuffer(ENTRIES_AT + size));
    table.setUint32(NAME_BYTES, size, true);
    const answer = ask(IPT_SO_GET_ENTRIES, table);
    // Its size is another one by now.
    if (answer < 0 && lastErrno() === EAGAIN) continue;
    check("getsockopt IPT_SO_GET_ENTRIES", answer, name);
    const entries = entriesOf(table.buffer, family);
    return { family, name, hooks: hooksOf(info), entries, answer: new Uint8Array(table.buffer) };
  }
  throw new SyscallError("getsockopt IPT_SO_GET_ENTRIES", EAGAIN, name);
}

function hooksOf(info: DataView): LegacyTable["hooks"] {
  const present = info.getUint32(HOOKS_AT, true),
    at = (from: number, hook: number) => info.getUint32(from + 4 * hook, true);
  return Array.from({ length: NF_INET_NUMHOOKS }, (_, number) => number)
    .filter((number) => (present & (1 << number)) !== 0)
    .map((number) => ({ number, first: at(FIRST_AT, number), policy: at(POLICY_AT, number) }));
}

function entriesOf(answer: ArrayBuffer, family: 4 | 6): LegacyEntry[] {
  const { targetOffset, nextOffset, counters } = PLACES[family], entries: LegacyEntry[] = [];
  const all = new DataView(answer, ENTRIES_AT);
  for (let at = 0; at < all.byteLength;) {
    const length = all.getUint16(at + nextOffset, true), bytes = new DataView(answer, ENTRIES_AT + at, length);
    new Uint8Array(answer, ENTRIES_AT + at + counters, COUNTERS_BYTES).fill(0);
    entries.push({ at, bytes, targetAt: bytes.getUint16(targetOffset, true), length });
    at += length;
  }
  return entries;
}
