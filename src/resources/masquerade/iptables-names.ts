/**
 * The rules of the reference plugins' iptables backend. Whoever writes them, into nf_tables or into the older kernel
 * tables, `iptables -t nat -S` shows
 *
 *     -A POSTROUTING -s 10.88.0.5/32 -m comment --comment "name: \"N\" id: \"C\"" -j CNI-<24hex>
 *     -A CNI-<24hex> -d 10.88.0.0/16 -m comment --comment "name: \"N\" id: \"C\"" -j ACCEPT
 *     -A CNI-<24hex> ! -d 224.0.0.0/4 -m comment --comment "name: \"N\" id: \"C\"" -j MASQUERADE
 *
 * The interface is not part of it: a container attached twice to one network has one chain, and the first of the two
 * to go leaves it to the other.
 */
import { formatPrefix, networkOf, parsePrefix, type Prefix } from "../../net/address.ts";

export interface Named {
  network: string;
  containerId: string;
}

/** Network and container in SHA-512, as the reference plugins cut it. */
export function chainName({ network, containerId }: Named): string {
  return `CNI-${new Bun.CryptoHasher("sha512").update(network + containerId).digest("hex").slice(0, 24)}`;
}

/** Go's %q of both; CNI allows nothing in them that it would escape. */
export function ruleComment({ network, containerId }: Named): string {
  return `name: "${network}" id: "${containerId}"`;
}

/** Who the rule with this comment and this chain belongs to; undefined when it is none of these rules. */
export function namedIn(comment: string | undefined, chain: string | undefined): Named | undefined {
  const parts = /^name: "([^"]*)" id: "([^"]*)"$/.exec(comment ?? "");
  if (parts === null) return undefined;
  const named = { network: parts[1]!, containerId: parts[2]! };
  return chainName(named) === chain ? named : undefined;
}

/** The addresses of one family, with the subnets they are in, each once. */
export interface FamilyAddresses {
  addresses: Prefix[];
  subnets: Prefix[];
}

export function ofFamily(all: readonly string[], size: 4 | 16): FamilyAddresses {
  const addresses: Prefix[] = [], subnets: Prefix[] = [], seen = new Set<string>();
  for (const text of all) {
    const address = parsePrefix(text);
    if (address?.bytes.length !== size) continue;
    addresses.push(address);
    const subnet = { bytes: networkOf(address), bits: address.bits };
    const name = formatPrefix(subnet);
    if (!seen.has(name)) subnets.push(subnet);
    seen.add(name);
  }
  return { addresses, subnets };
}
