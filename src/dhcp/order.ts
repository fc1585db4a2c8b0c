/**
 * What the plugin and the service say to each other: one line of JSON each way, with the container's namespace as a
 * descriptor beside the plugin's. Both are the same program, so the form may change with its version.
 */
import type { Owner } from "../contract/owner.ts";
import type { LeaseText } from "./journal/lease-text.ts";
import type { LeaseText6 } from "./journal/lease-text6.ts";
import type { Wishes } from "./wishes.ts";

export const DEFAULT_SOCKET = "/run/cni/dhcp.sock", DEFAULT_DIRECTORY = "/var/lib/cni/dhcp";

/** One that differs does not understand the other. */
export const ORDER_VERSION = 1;
export const LONGEST_LINE = 64 * 1024;

export type Order =
  | { do: "acquire"; owner: Owner; netnsPath: string; wishes: Wishes }
  | { do: "check"; owner: Owner }
  | { do: "release"; owner: Owner }
  /** Keeps those that are listed as `container/interface`. */
  | { do: "collect"; network: string; valid: string[] }
  | { do: "report"; network: string };

export type Answer =
  | { version: number; lease?: LeaseText; lease6?: LeaseText6; report?: Report }
  | { version: number; failure: string; hint?: string };

/** How a network is doing. */
export interface Report {
  /** Why the last attempt to get a lease failed, when none has succeeded since. */
  obstacle?: string;
  /** Leases that no server has renewed in time. */
  unanswered: number;
}

export function nameOf({ containerId, network, ifName }: Owner): string {
  return `${containerId}/${network}/${ifName}`;
}

export function failure(text: string, hint?: string): Answer {
  return { version: ORDER_VERSION, failure: text, hint };
}
