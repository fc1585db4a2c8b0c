/** The attachment of one container's interface to one network. Ledgers, leases and rules are keyed by it. */
export interface Owner {
  network: string;
  containerId: string;
  ifName: string;
}

/** The owner alone of what says more. */
export function asOwner({ network, containerId, ifName }: Owner): Owner {
  return { network, containerId, ifName };
}

/** No attachment has it, so every ledger is another's. */
export const NO_OWNER: Owner = { network: "", containerId: "", ifName: "" };

/** For maps and sets. */
export function ownerText({ network, containerId, ifName }: Owner): string {
  return `${network} ${containerId} ${ifName}`;
}

export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.network === other.network && one.containerId === other.containerId && one.ifName === other.ifName;
}
