/** Chains of iptables: those that all containers share, and the reference plugins' of one container in one network. */
import { existingTable } from "../../../interop/iptables/host-tables.ts";
import { FAMILIES, type IptablesRule, type TableName } from "../../../interop/iptables/rule.ts";
import { isAmong, type PresentRule, type TableChange } from "../../../interop/iptables/table.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import type { Retired } from "../../../contract/resource.ts";
import { ENOENT } from "../../../ffi/errno.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";
import { netfilterOf } from "./netfilter-socket.ts";

export interface SharedRule {
  chain: string;
  rule: IptablesRule;
  /** It stands at the beginning of its chain, else at the end. */
  first?: true;
  /** Whose it is, when it goes with one attachment; not for a rule at the end. */
  owner?: string;
}

/**
 * Makes what is missing; it stays when the last container is removed. Returns the chains that were made. `present` lists
 * the rules among which one may be.
 */
export function addShared(
  table: TableChange,
  chains: readonly string[],
  rules: readonly SharedRule[],
  present: (chain: string) => readonly PresentRule[],
): string[] {
  const created = chains.filter((chain) => !table.hasChain(chain));
  for (const chain of created) table.createChain(chain);
  for (const { chain, rule, first, owner } of rules) {
    if (!created.includes(chain) && isAmong(rule, present(chain))) continue;
    if (first) table.insert(chain, rule, owner);
    else table.append(chain, rule);
  }
  return created;
}

/** The shared chains that stay when a network is removed. A table that cannot be listed does not keep the network. */
export function sharedLeft(name: TableName, chains: readonly string[], host: Host): Retired[] {
  if (chains.length === 0) return [];
  try {
    const tables = FAMILIES.map((family) => existingTable(netfilterOf(host), name, family));
    return [...new Set(chains)].filter((chain) => tables.some((table) => table?.hasChain(chain)))
      .map((chain) => ({ what: `chain ${chain} of iptables`, staysBecause: "all networks share it" }));
  } catch {
    return [];
  }
}

export interface Named {
  network: string;
  containerId: string;
}

const NAME_CHARACTERS = 28;

export function containerChain(start: string, { network, containerId }: Named): string {
  const hash = new Bun.CryptoHasher("sha512").update(network + containerId).digest("hex");
  return start + hash.slice(0, NAME_CHARACTERS - start.length);
}

/** Go's %q of both; CNI allows nothing in them that it would escape. */
export function containerComment({ network, containerId }: Named): string {
  return `name: "${network}" id: "${containerId}"`;
}

/** Whose the chain is, by the comment of a rule in it or of one that leads there. Undefined for any other chain. */
export function namedIn(start: string, comment: string | undefined, chain: string | undefined): Named | undefined {
  const parts = /^(?:dnat )?name: "([^"]*)" id: "([^"]*)"$/.exec(comment ?? "");
  if (parts === null) return undefined;
  const named = { network: parts[1]!, containerId: parts[2]! };
  return containerChain(start, named) === chain ? named : undefined;
}

/**
 * Runs `change`. Tables and chains are made by the same transaction, so ENOENT means that the kernel lacks a match or a
 * target of the rules; the error then names them, and the option that works without.
 */
export function explainingEnoent(what: string, modules: string, option: string, change: () => boolean): boolean {
  try {
    return change();
  } catch (error) {
    if (!isNetlinkError(error, ENOENT)) throw error;
    const details = `the kernel lacks ${modules}; ${option} does without`;
    throw new CniError(INTERNAL, `${what}: ${error.message}`, details, { cause: error });
  }
}
