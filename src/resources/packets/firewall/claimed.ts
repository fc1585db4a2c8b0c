/** Rules and sources that do not say whose they are. */
import type { Host } from "../../../contract/host.ts";
import { type FirewallSpec, KIND } from "./spec.ts";

/**
 * Whether another attachment's ledger holds the address: then what stands for it belongs to that one. The ledgers are
 * read when it is first asked.
 */
export function claimedAddresses(spec: FirewallSpec, host: Host): (address: string) => boolean {
  let claimed: Set<string> | undefined;
  return (address) => {
    if (claimed === undefined) {
      claimed = new Set();
      for (const other of host.claimedByOthers(KIND, spec) as FirewallSpec[]) {
        for (const each of other.addresses) claimed.add(each);
      }
    }
    return claimed.has(address);
  };
}
