/** What `inspect` and `repair` share: choosing attachments by operands, and printing them. */
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { networkNames } from "../../runtime/conf/directory.ts";
import { unreadableLedgers } from "../../engine/ledger/ledger.ts";
import { knownAttachments } from "../../runtime/records.ts";
import { type Command, type GivenArguments, UsageError } from "./command.ts";
import { namedBy, namedOrPlaced, notAttached, nothingAttached } from "./named-attachments.ts";
import { configDirectoryOf, containerNote, DIGITS_TO_SHOW, runtimeOf, runtimeOptions } from "./network-arguments.ts";
import { print, printJson, printToStderr } from "../../process/output.ts";
import { briefly, type ShownAttachment, shownInFull } from "./shown-attachments.ts";

/** What `selectedAttachments` and `showAttachments` read. */
export const inspectionArguments = {
  operands: "[NETWORK] [CONTAINER]",
  operandCount: [0, 2],
  needsRoot: true,
  notes: `${containerNote(DIGITS_TO_SHOW)}` +
    "NETWORK alone means all attachments to it, CONTAINER alone all of the container; a name of both is the network's.\n" +
    "Without both, all that a ledger or a cached result names are shown.\n",
  options: {
    brief: { help: "print one line for each attachment, the worst first" },
    json: { help: "print JSON" },
    "plugin-path": runtimeOptions["plugin-path"]!,
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
} satisfies Partial<Command>;

/**
 * The attachments of the network or container named as operands, or all. Throws when there are none by that name. `command`
 * is what people call.
 */
export function selectedAttachments(given: GivenArguments, command: string): KnownAttachment[] {
  return selectedOf(given, knownAttachments(runtimeOf(given)), command);
}

function selectedOf(given: GivenArguments, all: KnownAttachment[], command: string): KnownAttachment[] {
  const [network, container] = given.operands;
  if (network === undefined) return all;
  const ofNetwork = all.filter((attachment) => attachment.network === network);
  const namesake = container === undefined ? containerNamed(network, all, command) : undefined;
  if (ofNetwork.length === 0) {
    const configured = networkNames(configDirectoryOf(given));
    const named = configured.includes(network) ? [] : namedOrPlaced(network, all, DIGITS_TO_SHOW);
    if (named.length > 0 && container === undefined) return named;
    const text = nothingAttached(network, all, configured);
    throw new Error(namesake === undefined ? text : `${text}; ${namesake}`);
  }
  if (namesake !== undefined) printToStderr(`"${network}" is taken for the network; ${namesake}`);
  if (container === undefined) return ofNetwork;
  const found = namedOrPlaced(container, ofNetwork, DIGITS_TO_SHOW);
  if (found.length === 0) throw new Error(notAttached(container, network, all, DIGITS_TO_SHOW).text);
  return found;
}

/** How to name a container that is called as the network is, and is in other networks. The beginning of an ID is no name. */
function containerNamed(network: string, all: readonly KnownAttachment[], command: string): string | undefined {
  const networks = [...new Set(namedBy(network, all, Infinity).map((one) => one.network))];
  if (networks.every((each) => each === network)) return undefined;
  return `for the container say ${networks.map((each) => `'patchbay ${command} ${each} ${network}'`).join(" or ")}`;
}

/** Prints the attachments and returns the exit status: 0 when all are as they were made. */
export function showAttachments(given: GivenArguments, attachments: readonly ShownAttachment[]): number {
  const isBrief = given.has("brief");
  if (isBrief && given.has("json")) throw new UsageError("--brief and --json exclude each other");
  if (given.has("json")) printJson(attachments);
  else print(isBrief ? briefly(attachments) : shownInFull(attachments));
  if (!attachments.every(({ state }) => state === "ok")) return 1;
  // When all attachments are asked for, a ledger that nobody can read is not "ok", either.
  return given.operands.length === 0 && unreadableLedgers().length > 0 ? 1 : 0;
}
