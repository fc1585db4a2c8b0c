/**
 * The rules of the reference plugins' iptables backend, which `iptables -t nat -S` shows as
 *
 *     -A POSTROUTING -s 10.88.0.5/32 -m comment --comment "name: \"N\" id: \"C\"" -j CNI-<24hex>
 *     -A CNI-<24hex> -d 10.88.0.0/16 -m comment --comment "name: \"N\" id: \"C\"" -j ACCEPT
 *     -A CNI-<24hex> ! -d 224.0.0.0/4 -m comment --comment "name: \"N\" id: \"C\"" -j MASQUERADE
 *
 * The interface is not part of the chain's name: a container attached twice to one network has one chain, and the first
 * attachment that is removed leaves it to the other.
 */
import { FAMILIES, type Family, type IptablesRule, toolOf } from "../../../interop/iptables/rule.ts";
import { changeEveryTable, changeTable, readTable } from "../../../interop/iptables/host-tables.ts";
import { isAmong, missingAmong, type PresentRule, type TableChange } from "../../../interop/iptables/table.ts";
import { multicast4, multicast6 } from "../../../ffi/netlink/nftables/packet-match.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { formatAddress, formatPrefix, networkOf, parsePrefix, type Prefix } from "../../../net/address.ts";
import type { Host } from "../../../contract/host.ts";
import type { Backend } from "../shared/backend.ts";
import {
  containerChain,
  containerComment,
  explainingEnoent,
  type Named,
  namedIn,
} from "../shared/iptables-chains.ts";
import { netfilterOf } from "../shared/netfilter-socket.ts";
import type { MasqueradeSpec } from "./spec.ts";

const CHAIN = "CNI-";

export function masqueradeChain(named: Named): string {
  return containerChain(CHAIN, named);
}

/** The rules for a container in the `nat` table of one family. */
interface ContainerRules {
  accepts: IptablesRule[];
  masquerade: IptablesRule;
  jumps: IptablesRule[];
}

function rulesOf(spec: MasqueradeSpec, family: Family): ContainerRules {
  const comment = containerComment(spec), chain = masqueradeChain(spec);
  const accepts: IptablesRule[] = [], jumps: IptablesRule[] = [], seen = new Set<string>();
  for (const address of ofFamily(spec.addresses, family)) {
    const { bytes, bits } = address, prefix = { bytes: networkOf(address), bits };
    jumps.push({ source: { prefix: { bytes, bits: bytes.length * 8 } }, comment, target: { jump: chain } });
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
  return FAMILIES.filter((family) => ofFamily(addresses, family).length > 0);
}

function addAll(table: TableChange, chain: string, { accepts, masquerade, jumps }: ContainerRules): void {
  table.createChain(chain);
  for (const rule of accepts) table.append(chain, rule);
  table.append(chain, masquerade);
  for (const rule of jumps) table.append("POSTROUTING", rule);
}

/** For a chain that was left behind, or that belongs to the container's other interface. */
function addMissing(table: TableChange, chain: string, { accepts, masquerade, jumps }: ContainerRules): void {
  const present = table.rules(chain), presentJumps = table.jumps("POSTROUTING", chain);
  // Before the rule that masquerades.
  for (const rule of accepts) if (!isAmong(rule, present)) table.insert(chain, rule);
  if (!isAmong(masquerade, present)) table.append(chain, masquerade);
  for (const rule of jumps) if (!isAmong(rule, presentJumps)) table.append("POSTROUTING", rule);
}

/**
 * Without addresses, removes everything of the container in this network. Else removes what is for these addresses, and
 * for addresses that no link of the container has: a DEL that could not see the link left those behind. Where the
 * container cannot be looked into, what is for other addresses stays.
 */
function removeFrom(table: TableChange, spec: MasqueradeSpec, host: Host): void {
  const { addresses } = spec, chain = masqueradeChain(spec);
  if (!table.hasChain(chain)) return;
  const jumps = table.jumps("POSTROUTING", chain), mine = ofFamily(addresses, table.family);
  const others = addresses.length === 0 ? [] : jumps.filter((jump) => !isFrom(mine, jump));
  const { container } = host;
  const present = others.length === 0 ? [] : container && listAddresses(container.route, 0);
  const staying = present === undefined ? others : others.filter((jump) => isFrom(present, jump));
  for (const jump of jumps) if (!staying.includes(jump)) table.delete(jump);
  if (staying.length === 0) table.deleteChain(chain);
}

/** Before 0.8.0 the reference plugins wrote the subnet as the source. */
function isFrom(addresses: Prefix[], { source }: PresentRule): boolean {
  return source !== undefined &&
    addresses.some((address) => startsWith(address.bytes, source) || startsWith(networkOf(address), source));
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => byte === bytes[index]);
}

function verifyFamily(spec: MasqueradeSpec, host: Host, family: Family): string[] {
  const differences: string[] = [], chain = masqueradeChain(spec), where = `${toolOf(family)} nat chain ${chain}`;
  const { accepts, masquerade, jumps } = rulesOf(spec, family);
  const table = readTable(host, "nat", family), present = table.rules(chain);
  if (![...accepts, masquerade].every((rule) => isAmong(rule, present))) {
    differences.push(`a rule of the ${where} is missing or altered`);
  }
  for (const rule of missingAmong(table.jumps("POSTROUTING", chain), jumps)) {
    const from = formatAddress(rule.source!.prefix.bytes);
    differences.push(`the jump from POSTROUTING to the ${where} for ${from} is missing`);
  }
  return differences;
}

export const backend: Backend<MasqueradeSpec> = {
  apply(spec, host) {
    const chain = masqueradeChain(spec);
    const change = () =>
      changeTable(host, "nat", familiesOf(spec.addresses), (table) => {
        const rules = rulesOf(spec, table.family);
        if (table.hasChain(chain)) addMissing(table, chain, rules);
        else addAll(table, chain, rules);
      });
    return explainingEnoent(
      "ipMasq by iptables",
      "xt_comment or xt_MASQUERADE",
      '"ipMasqBackend": "nftables"',
      change,
    );
  },
  verify: (spec, host) => familiesOf(spec.addresses).flatMap((family) => verifyFamily(spec, host, family)),
  remove(spec, host, isRestated) {
    const families = spec.addresses.length === 0 ? FAMILIES : familiesOf(spec.addresses);
    changeEveryTable(netfilterOf(host), "nat", families, isRestated, (table) => removeFrom(table, spec, host));
  },
  sweep(network, isValid, host) {
    changeEveryTable(netfilterOf(host), "nat", FAMILIES, true, (table) => {
      const lost = new Set<string>();
      for (const { chain, comment, leadsTo } of table.allRules()) {
        // A chain that lost its jumps is found by the rules in it.
        const named = namedIn(CHAIN, comment, leadsTo ?? chain) ?? namedIn(CHAIN, comment, chain);
        if (named?.network === network && !isValid(named)) lost.add(masqueradeChain(named));
      }
      for (const rule of table.allRules()) {
        if (rule.leadsTo !== undefined && lost.has(rule.leadsTo) && !lost.has(rule.chain)) table.delete(rule);
      }
      for (const chain of lost) if (table.hasChain(chain)) table.deleteChain(chain);
    });
  },
};
