/** The leases in the journal of the DHCP service, for people. */
import { recordsIn } from "../../services/dhcp/journal/journal.ts";

/** Times in whole seconds from now; null: never. */
export interface LeaseState {
  /** Its address, or its DUID. */
  server: string;
  state: "bound" | "renewing" | "rebinding" | "expired" | "given up";
  renewsIn: number | null;
  expiresIn: number | null;
}

interface Times {
  sinceWall: number;
  lease: number | null;
  renew: number | null;
  rebind: number | null;
}

export function dhcpLeases(directory: string) {
  const now = Date.now() / 1000;
  return recordsIn(directory).flatMap(({ record, isToBeReleased }) => {
    const { network, containerId, ifName, v4, v6 } = record;
    const listed = (address: string, server: string, times: Times) => {
      const state = isToBeReleased ? "given up" : stateOf(times, now);
      return { network, address, containerId, ifName, lease: { server, state, ...timesLeft(times, now) } };
    };
    return [
      ...v4 ? [listed(v4.lease.address.split("/")[0]!, v4.lease.server, { ...v4, ...v4.lease })] : [],
      ...v6 ? [listed(v6.lease.address, v6.lease.server, { ...v6, ...v6.lease, lease: v6.lease.valid })] : [],
    ];
  });
}

function stateOf({ sinceWall, lease, renew, rebind }: Times, now: number): LeaseState["state"] {
  const isPast = (seconds: number | null) => seconds !== null && now - sinceWall >= seconds;
  return isPast(lease) ? "expired" : isPast(rebind) ? "rebinding" : isPast(renew) ? "renewing" : "bound";
}

function timesLeft({ sinceWall, lease, renew }: Times, now: number) {
  const left = (seconds: number | null) =>
    seconds === null ? null : Math.max(0, Math.round(sinceWall + seconds - now));
  return { renewsIn: left(renew), expiresIn: left(lease) };
}

export function describeLease({ server, state, renewsIn, expiresIn }: LeaseState): string {
  const until = (seconds: number | null) => seconds === null ? "never" : `in ${seconds} s`;
  return `DHCP from ${server}, ${state}, renews ${until(renewsIn)}, expires ${until(expiresIn)}`;
}
