/** The leases in the journal of the DHCP service, for people. */
import { recordsIn } from "../../dhcp/journal/journal.ts";
import type { V4Record } from "../../dhcp/journal/record.ts";

/** Times in whole seconds from now; null: never. */
export interface LeaseState {
  server: string;
  state: "bound" | "renewing" | "rebinding" | "expired" | "given up";
  renewsIn: number | null;
  expiresIn: number | null;
}

export function dhcpLeases(directory: string) {
  return recordsIn(directory).flatMap(({ record, isGivenUp }) => {
    const { network, containerId, ifName, v4 } = record;
    if (v4 === undefined) return [];
    const address = v4.lease.address.split("/")[0]!, lease = stateOf(v4, Date.now() / 1000);
    return [{
      network,
      address,
      containerId,
      ifName,
      lease: isGivenUp ? { ...lease, state: "given up" as const } : lease,
    }];
  });
}

function stateOf({ sinceWall, lease: { server, lease, renew, rebind } }: V4Record, now: number): LeaseState {
  const age = now - sinceWall, isPast = (seconds: number | null) => seconds !== null && age >= seconds;
  const left = (seconds: number | null) => seconds === null ? null : Math.max(0, Math.round(seconds - age));
  const state = isPast(lease) ? "expired" : isPast(rebind) ? "rebinding" : isPast(renew) ? "renewing" : "bound";
  return { server, state, renewsIn: left(renew), expiresIn: left(lease) };
}

export function describeLease({ server, state, renewsIn, expiresIn }: LeaseState): string {
  const until = (seconds: number | null) => seconds === null ? "never" : `in ${seconds} s`;
  return `DHCP from ${server}, ${state}, renews ${until(renewsIn)}, expires ${until(expiresIn)}`;
}
