/** The attachment of one container's interface to one network. Ledgers, leases and rules are keyed by it. */
export interface Owner {
  network: string;
  containerId: string;
  ifName: string;
}
