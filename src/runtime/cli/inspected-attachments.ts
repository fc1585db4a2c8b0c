/** What `inspect` and `repair` share: choosing attachments by operands, and printing them. */
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { networkNames } from "../conf/directory.ts";
import { unreadableLedgers } from "../../engine/ledger/ledger.ts";
import { examineRecords, knownAttachments } from "../records.ts";
import { type Command, type Given, UsageError } from "./command.ts";
import { namedOrPlaced, notAttached, nothingAttached } from "./named-attachments.ts";
import { configDirectoryOf, containerNote, runtimeOf, runtimeOptions, TO_LOOK } from "./network-arguments.ts";
import { print, printJson } from "./output.ts";
import { briefly, type ShownAttachment, shownInFull } from "./shown-attachments.ts";

/** What `selectedAttachments` and `showAttachments` read. */
export const inspectionArguments = {
  operands: "[NETWORK] [CONTAINER]",
  operandCount: [0, 2],
  needsRoot: true,
  notes: `${containerNote(TO_LOOK)}` +
    "NETWORK alone means all attachments to it, CONTAINER alone all of the container. Without both, all that a ledger or\n" +
    "a cached result names are shown.\n",
  options: {
    brief: { help: "print one line for each attachment, the worst first" },
    json: { help: "print JSON" },
    "plugin-path": runtimeOptions["plugin-path"]!,
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
} satisfies Partial<Command>;

/** The attachments of the network or container named as operands, or all. Throws when there are none by that name. */
export function selectedAttachments(given: Given): KnownAttachment[] {
  const runtime = runtimeOf(given), selected = selectedOf(given, knownAttachments(runtime));
  examineRecords(runtime, () => selected);
  return selected;
}

function selectedOf(given: Given, all: KnownAttachment[]): KnownAttachment[] {
  const [network, container] = given.operands;
  if (network === undefined) return all;
  const ofNetwork = all.filter((attachment) => attachment.network === network);
  if (ofNetwork.length === 0) {
    const configured = networkNames(configDirectoryOf(given));
    const named = configured.includes(network) ? [] : namedOrPlaced(network, all, TO_LOOK);
    if (named.length > 0 && container === undefined) return named;
    throw new Error(nothingAttached(network, all, configured));
  }
  if (container === undefined) return ofNetwork;
  const found = namedOrPlaced(container, ofNetwork, TO_LOOK);
  if (found.length === 0) throw new Error(notAttached(container, network, all, TO_LOOK).text);
  return found;
}

/** Prints the attachments and returns the exit status: 0 when all are as they were made. */
export function showAttachments(given: Given, attachments: readonly ShownAttachment[]): number {
  const isBrief = given.has("brief");
  if (isBrief && given.has("json")) throw new UsageError("--brief and --json exclude each other");
  if (given.has("json")) printJson(attachments);
  else print(isBrief ? briefly(attachments) : shownInFull(attachments));
  if (!attachments.every(({ state }) => state === "ok")) return 1;
  // Of all attachments, what nobody could read is not "ok".
  return given.operands.length === 0 && unreadableLedgers().length > 0 ? 1 : 0;
}
