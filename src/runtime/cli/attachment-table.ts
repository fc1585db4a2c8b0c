/** What `inspect` begins with: a line for each attachment. */
import type { RecordedAttachment } from "../../engine/recorded.ts";
import type { Owner } from "../../engine/resource.ts";
import { loadKind } from "../../resources/table.ts";
import { table } from "./table.ts";

export interface Gist {
  addresses: string[];
  ports: string[];
}

/** The container's addresses and ports, by its ledgers. */
export function gistOf({ ledgers }: RecordedAttachment): Gist {
  const gists = ledgers.flatMap(({ entries }) => entries.map(({ kind, spec }) => loadKind(kind)?.gist?.(spec)));
  return {
    addresses: gists.flatMap((gist) => gist?.addresses ?? []),
    ports: gists.flatMap((gist) => gist?.ports ?? []),
  };
}

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
