/** What `inspect` begins with: a line for each attachment. */
import type { Gist } from "../../engine/operator/known-attachment.ts";
import type { Owner } from "../../contract/owner.ts";
import { table } from "./table.ts";

export function attachmentTable(attachments: readonly (Owner & Gist & { state: string })[]): string {
  if (attachments.length === 0) return "";
  const rows = attachments.map(({ network, containerId, ifName, addresses, ports, state }) => [
    network,
    containerId,
    ifName,
    addresses.join(" ") || "-",
    ports.join(" ") || "-",
    state,
  ]);
  return `${table([["network", "container", "interface", "addresses", "ports", "state"], ...rows])}\n`;
}
