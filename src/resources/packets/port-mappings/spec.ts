/** What port mappings are, and what of them is for which address family. Pure. */
import type { PortClaim, PortClaimant, UnreachedPort } from "../../../contract/host-ports.ts";
import type { Owner } from "../../../contract/owner.ts";
import { FAMILIES, type Family, type LinkMatch, type Mark, type Protocol } from "../../../interop/iptables/rule.ts";
import { isSameBytes, parseAddress, parsePrefix } from "../../../net/address.ts";
import type { NatBackend } from "../shared/nat-backend.ts";

export interface PortMapping {
  protocol: Protocol;
  hostPort: number;
  containerPort: number;
  /** The host's address that the mapping is for. Without it, all addresses; with zeros, all addresses of that family. */
  hostIp?: string;
}

/** What else must be true for the mappings to apply. */
export interface Conditions {
  /** Conditions on a mapping: other mappings are left out. */
  protocol?: { value: Protocol; not?: true };
  ports?: { first: number; last: number; not?: true };
  /** Conditions on each packet. */
  source?: PrefixCondition;
  destination?: PrefixCondition;
  inLink?: LinkMatch;
  outLink?: LinkMatch;
  mark?: Mark & { not?: true };
}

export interface PrefixCondition {
  prefix: string;
  not?: true;
}

export interface PortMappingsSpec extends Owner {
  backend: NatBackend;
  /** The container's, with prefix; at most one of each family. */
  addresses: string[];
  mappings: PortMapping[];
  /** Whose connections get the host's address as source: "own", the container's subnet and the host's loopback; or all. */
  masquerade?: "own" | "all";
  /** For iptables: the mark that asks for it is this bit, or is set by a chain of others. */
  markBit: number;
  setMarkChain?: string;
  conditions?: { 4?: Conditions; 6?: Conditions };
  /**
   * Mappings of all addresses take 127.0.0.1 of the host's loopback addresses, and ::1 is in no rule. The reference plugin's
   * take all of them.
   */
  sparesLoopback?: true;
}

/** The chains of iptables that all containers share; that of one more is configured. */
export const DNAT = "CNI-HOSTPORT-DNAT", MASQ = "CNI-HOSTPORT-MASQ", SETMARK = "CNI-HOSTPORT-SETMARK";

/** The shared chains that these mappings have made. */
export function sharedMappingChains({ masquerade, setMarkChain }: PortMappingsSpec): string[] {
  return masquerade === undefined || setMarkChain !== undefined ? [DNAT] : [DNAT, SETMARK, MASQ];
}

/** The container's address of the family, which mappings lead to. */
export function addressOf(
  { addresses }: PortMappingsSpec,
  family: Family,
): { bytes: Uint8Array; bits: number } | undefined {
  for (const text of addresses) {
    const address = parsePrefix(text);
    if (address?.bytes.length === (family === 4 ? 4 : 16)) return address;
  }
  return undefined;
}

/** Whether it is one of the family's mappings. */
export function appliesTo(
  { conditions, sparesLoopback }: PortMappingsSpec,
  mapping: PortMapping,
  family: Family,
): boolean {
  return isAllowed(conditions?.[family], mapping) && isForFamily(mapping, family) &&
    !(sparesLoopback && isLoopback6(hostAddress(mapping)));
}

function isForFamily({ hostIp }: PortMapping, family: Family): boolean {
  return hostIp === undefined || parseAddress(hostIp)!.length === (family === 4 ? 4 : 16);
}

export function isAllowed(conditions: Conditions | undefined, { protocol, hostPort }: PortMapping): boolean {
  const { protocol: wanted, ports } = conditions ?? {};
  if (wanted !== undefined && (wanted.value === protocol) === (wanted.not === true)) return false;
  return ports === undefined || (hostPort >= ports.first && hostPort <= ports.last) !== (ports.not === true);
}

/** The one address of the host that the mapping is for, or undefined. */
export function hostAddress({ hostIp }: PortMapping): Uint8Array | undefined {
  const bytes = hostIp === undefined ? undefined : parseAddress(hostIp);
  return bytes?.some((byte) => byte !== 0) ? bytes : undefined;
}

/** Whether a mapping of all addresses is one of this address: of the loopback's, the host's own services have the others. */
export function isAmongAll(at: Uint8Array | undefined): boolean {
  if (isLoopback6(at)) return false;
  return at?.length !== 4 || at[0] !== 127 || (at[1] === 0 && at[2] === 0 && at[3] === 1);
}

export const LOOPBACK_6: Uint8Array = new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/** Whether it is ::1. Nobody gets there by a mapping: IPv6 has no `route_localnet`. */
export function isLoopback6(at: Uint8Array | undefined): boolean {
  return at !== undefined && isSameBytes(at, LOOPBACK_6);
}

export function portClaimantOf(spec: PortMappingsSpec): PortClaimant {
  const { network, containerId, backend, mappings } = spec, claims: PortClaim[] = [], ports: UnreachedPort[] = [];
  const families = FAMILIES.filter((family) => addressOf(spec, family) !== undefined);
  for (const mapping of mappings) {
    const { protocol, hostPort: port, hostIp } = mapping, at = hostAddress(mapping);
    const reached = isLoopback6(at) ? [] : families.filter((family) => isForFamily(mapping, family));
    if (reached.length === 0) ports.push({ protocol, port, hostIp });
    for (const family of reached) if (appliesTo(spec, mapping, family)) claims.push({ family, protocol, port, at });
  }
  return {
    network,
    containerId,
    way: backend,
    claims,
    unreached: ports.length === 0 ? undefined : { ports, families },
  };
}
