/**
 * The iptables backend on hosts whose iptables writes the older kernel tables. They can only be replaced as a whole,
 * under a lock that all writers share, so here iptables-restore does it: one run an address family, all rules at once.
 */
import { environmentBlock } from "../../ffi/environment.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { runProgram } from "../../ffi/spawn.ts";
import { findInPath, hasLegacyNat } from "../../ffi/xtables.ts";
import { formatAddress, formatPrefix } from "../../net/address.ts";
import type { MasqueradeSpec } from "../masquerade.ts";
import { chainName, type Named, namedIn, ofFamily, ruleComment } from "./iptables-names.ts";

type Size = 4 | 16;

/** Prefers the program that is legacy by name: `iptables-restore` may have become the other one since. */
function run(size: Size, what: "save" | "restore", parameters: string[], input = ""): string {
  const family = size === 4 ? "iptables" : "ip6tables";
  const path = findInPath(`${family}-legacy-${what}`) ?? findInPath(`${family}-${what}`);
  if (path === undefined) throw new Error(`${family}-${what} is not in PATH, and the nat table is iptables-legacy's`);
  const environment: Uint8Array[] = [];
  const block = environmentBlock();
  for (let start = 0, end; (end = block.indexOf(0, start)) >= 0; start = end + 1) {
    environment.push(block.subarray(start, end));
  }
  const { ending, stdout, stderr } = runProgram({ path, argv: [path, ...parameters], environment }, utf8(input));
  if (!("exitStatus" in ending) || ending.exitStatus !== 0) {
    const how = "signal" in ending ? `signal ${ending.signal}` : `exit status ${ending.exitStatus}`;
    throw new Error(`${path}: ${how}: ${fromUtf8(stderr).trim()}`);
  }
  return fromUtf8(stdout);
}

function restore(size: Size, lines: string[]): void {
  run(size, "restore", ["--wait", "--noflush"], ["*nat", ...lines, "COMMIT", ""].join("\n"));
}

function quoted(comment: string): string {
  return `"${comment.replaceAll('"', '\\"')}"`;
}

function comment(named: Named): string {
  return `-m comment --comment ${quoted(ruleComment(named))}`;
}

interface Wanted {
  size: Size;
  inChain: string[];
  jumps: string[];
}

/** The rules as iptables-save writes them. */
function wantedOf(spec: MasqueradeSpec): Wanted[] {
  const chain = chainName(spec), said = comment(spec);
  return ([4, 16] as const).flatMap((size) => {
    const { addresses, subnets } = ofFamily(spec.addresses, size);
    if (addresses.length === 0) return [];
    return [{
      size,
      inChain: [
        ...subnets.map((subnet) =>
          `-A ${chain} ${subnet.bits === 0 ? "" : `-d ${formatPrefix(subnet)} `}${said} -j ACCEPT`
        ),
        `-A ${chain} ! -d ${size === 4 ? "224.0.0.0/4" : "ff00::/8"} ${said} -j MASQUERADE`,
      ],
      jumps: addresses.map(({ bytes }) =>
        `-A POSTROUTING -s ${formatAddress(bytes)}/${size * 8} ${said} -j ${chain}`
      ),
    }];
  });
}

export function apply(spec: MasqueradeSpec): void {
  // A chain that is declared is made, or emptied.
  for (const { size, inChain, jumps } of wantedOf(spec)) {
    restore(size, [`:${chainName(spec)} - [0:0]`, ...inChain, ...jumps]);
  }
}

function isInUse(size: Size): boolean {
  return hasLegacyNat(size === 4 ? 4 : 6);
}

function list(size: Size): string[] {
  return isInUse(size) ? run(size, "save", ["-t", "nat"]).split("\n") : [];
}

export function remove(named: Named & { addresses: readonly string[] }): void {
  const chain = chainName(named);
  for (const size of [4, 16] as const) {
    const { addresses } = ofFamily(named.addresses, size);
    if (addresses.length === 0 && named.addresses.length > 0) continue;
    const rules = list(size);
    const jumps = rules.filter((line) => line.startsWith("-A POSTROUTING ") && line.endsWith(` -j ${chain}`));
    const ours = jumps.filter((line) =>
      named.addresses.length === 0 || addresses.some((address) => isFrom(line, address))
    );
    const deletions = ours.map((line) => line.replace(/^-A/, "-D"));
    if (jumps.length === ours.length && rules.some((line) => line.startsWith(`:${chain} `))) {
      restore(size, [`:${chain} - [0:0]`, ...deletions, `-X ${chain}`]);
    } else if (deletions.length > 0) {
      restore(size, deletions);
    }
  }
}

/** Before 0.8.0 the reference plugins wrote the whole subnet as the source. */
function isFrom(line: string, { bytes, bits }: { bytes: Uint8Array; bits: number }): boolean {
  const [subnet] = ofFamily([formatPrefix({ bytes, bits })], bytes.length as Size).subnets;
  return line.includes(` -s ${formatAddress(bytes)}/${bytes.length * 8} `) ||
    line.includes(` -s ${formatPrefix(subnet!)} `);
}

/** One line for each rule that is missing. */
export function verify(spec: MasqueradeSpec): string[] {
  return wantedOf(spec).flatMap(({ size, inChain, jumps }) => {
    const rules = list(size);
    return [...inChain, ...jumps].filter((rule) => !rules.includes(rule)).map((rule) =>
      `missing in table nat: ${rule}`
    );
  });
}

/** For GC: every container of the network that has rules. */
export function owners(network: string): string[] {
  const found = new Set<string>();
  for (const size of [4, 16] as const) {
    for (const line of list(size)) {
      const parts = /^-A (\S+) .*--comment "(name: .*?)" -j (\S+)$/.exec(line);
      const said = parts?.[2]?.replaceAll('\\"', '"');
      const named = namedIn(said, parts?.[3]) ?? namedIn(said, parts?.[1]);
      if (named?.network === network) found.add(named.containerId);
    }
  }
  return [...found];
}
