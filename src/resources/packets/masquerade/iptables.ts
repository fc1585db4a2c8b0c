/**
 * The rules of the reference plugins' iptables backend, which `iptables -t nat -S` shows as
 *
 *     -A POSTROUTING -s 10.88.0.5/32 -m comment --comment "name: \"N\" id: \"C\"" -j CNI-<24hex>
 *     -A CNI-<24hex> -d 10.88.0.0/16 -m comment --comment "name: \"N\" id: \"C\"" -j ACCEPT
 *     -A CNI-<24hex> ! -d 224.0.0.0/4 -m comment --comment "name: \"N\" id: \"C\"" -j MASQUERADE
 *
 * The interface is not part of it: a container attached twice to one network has one chain, and the first of the two
 * to go leaves it to the other.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { ENOENT } from "../../../ffi/errno.ts";
import type { Family, Rule } from "../../../iptables/rule.ts";
import { changeEveryTable, changeTable, type NetfilterHost, readTable } from "../../../iptables/host-tables.ts";
import { type FoundRule, isAmong, type TableChange } from "../../../iptables/table.ts";
import { multicast4, multicast6 } from "../../../ffi/netlink/nftables/address-match.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { formatAddress, formatPrefix, networkOf, parsePrefix, type Prefix } from "../../../net/address.ts";
import type { MasqueradeSpec } from "./masquerade.ts";

export interface Named {
  network: string;
  containerId: string;
}

/** Network and container in SHA-512, as the reference plugins cut it. */
export function chainName({ network, containerId }: Named): string {
  return `CNI-${new Bun.CryptoHasher("sha512").update(network + containerId).digest("hex").slice(0, 24)}`;
}

/** Who the rule belongs to, which stands in `chain` or leads there; undefined when it is none of these rules. */
function namedIn(comment: string | undefined, chain: string | undefined): Named | undefined {
  const parts = /^name: "([^"]*)" id: "([^"]*)"$/.exec(comment ?? "");
  if (parts === null) return undefined;
  const named = { network: parts[1]!, containerId: parts[2]! };
  return chainName(named) === chain ? named : undefined;
}

/** What one family's `nat` table is to hold for a container. */
interface Wanted {
  accepts: Rule[];
  masquerade: Rule;
  jumps: Rule[];
}

function wantedOf(spec: MasqueradeSpec, family: Family): Wanted {
  // Go's %q of both; CNI allows nothing in them that it would escape.
  const comment = `name: "${spec.network}" id: "${spec.containerId}"`;
  const accepts: Rule[] = [], jumps: Rule[] = [], seen = new Set<string>();
  for (const address of ofFamily(spec.addresses, family)) {
    const { bytes, bits } = address, prefix = { bytes: networkOf(address), bits };
    jumps.push({ source: { prefix: { bytes, bits: bytes.length * 8 } }, comment, target: { jump: chainName(spec) } });
    const name = formatPrefix(prefix);
    if (!seen.has(name)) accepts.push({ destination: { prefix }, comment, target: "ACCEPT" });
    seen.add(name);
  }
  const many = { prefix: family === 4 ? multicast4 : multicast6, not: true } as const;
  return { accepts, masquerade: { destination: many, comment, target: "MASQUERADE" }, jumps };
}

function ofFamily(addresses: readonly string[], family: Family): Prefix[] {
  const found: Prefix[] = [];
  for (const text of addresses) {
    const address = parsePrefix(text);
    if (address?.bytes.length === (family === 4 ? 4 : 16)) found.push(address);
  }
  return found;
}

function familiesOf(addresses: readonly string[]): Family[] {
  const families: Family[] = [];
  for (const family of [4, 6] as const) if (ofFamily(addresses, family).length > 0) families.push(family);
  return families;
}

/** Answers false when the kernel has no nf_tables. */
export function apply(host: NetfilterHost, spec: MasqueradeSpec): boolean {
  try {
    return changeTable(host, "nat", familiesOf(spec.addresses), (table) => {
      const wanted = wantedOf(spec, table.family), chain = chainName(spec);
      if (table.hasChain(chain)) addMissing(table, chain, wanted);
      else addAll(table, chain, wanted);
    });
  } catch (error) {
    if (!isNetlinkError(error, ENOENT)) throw error;
    // What the tables need is made by the same transaction, so it is the extensions that are not there.
    const hint = 'the kernel lacks xt_comment or xt_MASQUERADE; "ipMasqBackend": "nftables" does without';
    throw new CniError(INTERNAL, `ipMasq by iptables: ${error.message}`, hint, { cause: error });
  }
}

function addAll(table: TableChange, chain: string, { accepts, masquerade, jumps }: Wanted): void {
  table.createChain(chain);
  for (const rule of accepts) table.append(chain, rule);
  table.append(chain, masquerade);
  for (const rule of jumps) table.append("POSTROUTING", rule);
}

/** To a chain that was left over, or that the container's other interface has. */
function addMissing(table: TableChange, chain: string, { accepts, masquerade, jumps }: Wanted): void {
  const present = table.rules(chain), presentJumps = table.jumps("POSTROUTING", chain);
  // Before the rule that masquerades.
  for (const rule of accepts) if (!isAmong(rule, present)) table.insert(chain, rule);
  if (!isAmong(masquerade, present)) table.append(chain, masquerade);
  for (const rule of jumps) if (!isAmong(rule, presentJumps)) table.append("POSTROUTING", rule);
}

/**
 * With no addresses, everything of the container in this network goes; else what is for these addresses, and for
 * addresses that the container has on no link: a DEL that did not see the link has left those. `listAddresses` answers
 * nothing where the container cannot be looked into; then what is for other addresses stays.
 */
export function remove(
  socket: NetlinkSocket | undefined,
  spec: Named & Pick<MasqueradeSpec, "addresses" | "restated">,
  listAddresses: () => Prefix[] | undefined,
) {
  const { addresses, restated } = spec, chain = chainName(spec);
  const families: Family[] = addresses.length === 0 ? [4, 6] : familiesOf(addresses);
  changeEveryTable(socket, "nat", families, restated === true, (table) => {
    if (!table.hasChain(chain)) return;
    const jumps = table.jumps("POSTROUTING", chain), mine = ofFamily(addresses, table.family);
    const others = addresses.length === 0 ? [] : jumps.filter((jump) => !isFrom(mine, jump));
    const present = others.length === 0 ? [] : listAddresses();
    const staying = present === undefined ? others : others.filter((jump) => isFrom(present, jump));
    for (const jump of jumps) if (!staying.includes(jump)) table.delete(jump);
    if (staying.length === 0) table.deleteChain(chain);
  });
}

/** Before 0.8.0 the reference plugins wrote the whole subnet as the source. */
function isFrom(addresses: Prefix[], { source }: FoundRule): boolean {
  return source !== undefined &&
    addresses.some((address) => startsWith(address.bytes, source) || startsWith(networkOf(address), source));
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => byte === bytes[index]);
}

/** One line for each rule that is missing. */
export function verify(host: NetfilterHost, spec: MasqueradeSpec): string[] {
  const differences: string[] = [], chain = chainName(spec);
  for (const family of familiesOf(spec.addresses)) {
    const tool = family === 4 ? "iptables" : "ip6tables", table = readTable(host, "nat", family);
    const { accepts, masquerade, jumps } = wantedOf(spec, family);
    const present = table.rules(chain), presentJumps = table.jumps("POSTROUTING", chain);
    if (![...accepts, masquerade].every((rule) => isAmong(rule, present))) {
      differences.push(`a rule of the ${tool} nat chain ${chain} is missing or altered`);
    }
    for (const rule of jumps) {
      if (isAmong(rule, presentJumps)) continue;
      const from = formatAddress(rule.source!.prefix.bytes);
      differences.push(`the jump from POSTROUTING to the ${tool} nat chain ${chain} for ${from} is missing`);
    }
  }
  return differences;
}

/** For GC: the rules of every container of the network that is not valid. */
export function sweep(
  socket: NetlinkSocket | undefined,
  network: string,
  isValid: (owner: { containerId: string }) => boolean,
): void {
  changeEveryTable(socket, "nat", [4, 6], true, (table) => {
    const lost = new Map<string, boolean>();
    for (const { chain, comment, leadsTo } of table.allRules()) {
      // One that lost its jumps is found by what is in it.
      const named = namedIn(comment, leadsTo ?? chain) ?? namedIn(comment, chain);
      if (named?.network === network && !isValid(named)) lost.set(chainName(named), true);
    }
    for (const rule of table.allRules()) {
      if (rule.leadsTo !== undefined && lost.has(rule.leadsTo) && !lost.has(rule.chain)) table.delete(rule);
    }
    for (const chain of lost.keys()) if (table.hasChain(chain)) table.deleteChain(chain);
  });
}
