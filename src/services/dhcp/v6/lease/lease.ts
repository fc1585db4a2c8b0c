/** A client's lease, its settings, and the actions that it asks for. Pure. */
import type { Binding, Reply } from "../message/offer.ts";
import type { Settings } from "../../v4/lease/client.ts";
import type { Held } from "./request.ts";

export type Offered6 = Reply & { binding: Binding };

/** A lease that a server has given. */
export interface Lease6 {
  offered: Offered6;
  /** When the request was sent, in seconds on the driver's clock. The lease counts from there. */
  since: number;
}

export function endOf({ offered, since }: Lease6): number {
  return since + offered.binding.valid;
}

export function heldBy({ offered: { server, binding: { address } } }: Lease6): Held {
  return { server, address };
}

/** What the driver is to do, in this order. */
export type Action6 =
  /** Is sent to all servers of the link, ff02::1:2. */
  | { do: "multicast"; bytes: Uint8Array }
  /** Find out whether somebody has the address (RFC 4862 section 5.4), then call `probed`. */
  | { do: "probe"; address: Uint8Array }
  /** The lease is ours, or has changed. */
  | { do: "use"; lease: Lease6; before: Lease6 | undefined }
  | { do: "stopUsing"; lease: Lease6; reason: string }
  | { do: "log"; text: string };

/** An exchange takes 24 bits of a new number. */
export type Settings6 = Pick<Settings, "probe" | "random" | "newXid">;
