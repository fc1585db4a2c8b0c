/** What `inspect` and `repair` have in common: which attachments are meant, and how they are shown. */
import type { InspectedAttachment } from "../../engine/operator/inspect.ts";
import { type KnownAttachment, listAttachments } from "../../engine/operator/known-attachment.ts";
import type { Given } from "./command.ts";
import { listCachedAttachments } from "../cached-attachments.ts";
import { nearest } from "./nearest.ts";
import { runtimeOf } from "./network-call.ts";
import { print, printLine } from "./print.ts";

/** Those of the network and container named as operands, or all. Throws when a name is none that is attached. */
export function attachmentsOf(given: Given): KnownAttachment[] {
  const [network, containerId] = given.operands;
  const all = listAttachments(listCachedAttachments(runtimeOf(given).cacheDirectory));
  const ofNetwork = named(all, "network", network);
  return named(ofNetwork, "containerId", containerId, ` to network "${network}"`);
}

function named(
  attachments: KnownAttachment[],
  key: "network" | "containerId",
  wanted: string | undefined,
  where = "",
): KnownAttachment[] {
  if (wanted === undefined) return attachments;
  const found = attachments.filter((attachment) => attachment[key] === wanted);
  if (found.length > 0) return found;
  const meant = nearest(wanted, [...new Set(attachments.map((attachment) => attachment[key]))]);
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  const what = key === "network"
    ? `nothing is attached to network "${wanted}"`
    : `"${wanted}" is not attached${where}`;
  throw new Error(`${what}; neither a ledger nor a cached result tells of it${hint}`);
}

interface Shown {
  what: string;
  state: string;
  differences: string[];
  /** Why it stays as it is. */
  reason?: string;
}

/** Answers the exit status: 0 when all is as it was made. */
export function show(
  given: Given,
  attachments: readonly InspectedAttachment<Shown & { kind: string }>[],
  head = "",
): number {
  if (given.has("json")) printLine(JSON.stringify(attachments, null, 2));
  else if (attachments.length === 0) printLine("nothing is attached");
  else print(head + attachments.map(describe).join("\n"));
  return attachments.every(({ state }) => state === "ok") ? 0 : 1;
}

function describe({ network, containerId, ifName, netnsPath, state, plugins }: InspectedAttachment<Shown>): string {
  const head = `network ${network}, container ${containerId}, ${ifName} in ${netnsPath}`;
  if (state === "gone") {
    return `${head}: the namespace is gone\n  'patchbay del' or 'gc --gone' removes what it left behind\n`;
  }
  const lines = plugins.flatMap(({ plugin, madeBy, resources }) => [
    `  ${plugin}${madeBy === "others" ? " (made by another program)" : ""}`,
    ...resources.flatMap(describeResource),
  ]);
  return `${[head, ...lines].join("\n")}\n`;
}

function describeResource({ what, state, differences, reason }: Shown): string[] {
  const below = [...differences, ...reason === undefined ? [] : [`not mended: ${reason}`]];
  return [`    ${state.padEnd(8)} ${what}`, ...below.map((line) => `             ${line}`)];
}
