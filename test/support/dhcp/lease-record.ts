/** What a container asks of the service by default, and its record in the journal before it has a lease. */
import type { LeaseRecord } from "../../../src/services/dhcp/journal/record.ts";
import type { LeaseOptions } from "../../../src/services/dhcp/lease-options.ts";

export const owner = { network: "net", containerId: "c1", ifName: "eth0" };

export const usualOptions: LeaseOptions = {
  clientId: "0063312f6e65742f65746830",
  wanted: [1, 3],
  provided: [],
  broadcast: false,
  probe: "none",
  servers: [],
  denied: [],
  onExpiry: "remove",
  ignored: [],
  priority: 0,
  v4: true,
  required: ["ipv4"],
};

export function recordOf(containerId: string, more: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    format: 1,
    ...owner,
    containerId,
    netnsPath: `/run/netns/${containerId}`,
    mac: "02:00:00:00:00:07",
    wishes: { ...usualOptions, clientId: Buffer.from(containerId).toString("hex") },
    bootId: "a boot",
    ...more,
  };
}
