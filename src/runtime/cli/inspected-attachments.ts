/** What `inspect` and `repair` share: choosing attachments by operands, and showing them. */
import { counted } from "../../contract/counted.ts";
import type { AttachmentState, InspectedAttachment } from "../../contract/shown.ts";
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { networkNames } from "../conf/directory.ts";
import { examineRecords, knownAttachments } from "../records.ts";
import type { Command, Given } from "./command.ts";
import { namedBy, namespaceName, notAttached, nothingAttached, shortId } from "./named-attachments.ts";
import { configDirectoryOf, containerNote, runtimeOf, runtimeOptions, TO_LOOK } from "./network-arguments.ts";
import { print, printLine } from "./output.ts";
import { textTable } from "./text-table.ts";

/** What `selectedAttachments` and `showAttachments` read. */
export const inspectionArguments = {
  operands: "[NETWORK [CONTAINER]]",
  operandCount: [0, 2],
  needsRoot: true,
  notes: `${containerNote(TO_LOOK)}` +
    "Without it, all attachments to NETWORK; without both, all that a ledger or a cached result names.\n",
  options: {
    json: { help: "print JSON" },
    "plugin-path": runtimeOptions["plugin-path"]!,
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
} satisfies Partial<Command>;

/** The attachments of the network and container named as operands, or all. Throws when there are none by that name. */
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
    throw new Error(nothingAttached(network, all, networkNames(configDirectoryOf(given))));
  }
  if (container === undefined) return ofNetwork;
  const found = namedBy(container, ofNetwork, TO_LOOK);
  if (found.length === 0) throw new Error(notAttached(container, network, all, TO_LOOK).text);
  return found;
}

interface ShownResource {
  what: string;
  state: string;
  differences: string[];
  /** Why it was not repaired. */
  reason?: string;
}

/** Prints the attachments below `head` and returns the exit status: 0 when all are as they were made. */
export function showAttachments(
  given: Given,
  attachments: readonly AttachmentState<ShownResource & { kind: string }>[],
  head = "",
): number {
  if (given.has("json")) printLine(JSON.stringify(attachments, null, 2));
  else if (attachments.length === 0) printLine("nothing is attached");
  else print(head + worstFirst(attachments).map(describe).join("\n"));
  return exitStatusFor(attachments);
}

export function exitStatusFor(attachments: readonly AttachmentState<unknown>[]): number {
  return attachments.every(({ state }) => state === "ok") ? 0 : 1;
}

const ORDER: AttachmentState["state"][] = ["differs", "gone", "elsewhere", "ok"];

/** Within a state by network, and by the namespace's name or the ID. */
function worstFirst<Attachment extends Pick<AttachmentState, "state" | "network" | "netnsPath" | "containerId">>(
  attachments: readonly Attachment[],
): Attachment[] {
  const { compare } = new Intl.Collator("en", { numeric: true }); // c9 before c10
  const nameOf = ({ netnsPath, containerId }: Attachment) => namespaceName(netnsPath) || containerId;
  return attachments.toSorted((one, other) =>
    ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || compare(one.network, other.network) ||
    compare(nameOf(one), nameOf(other))
  );
}

const MAKER = {
  patchbay: "",
  others: " (made by another program)",
  nobody: " (nothing to make)",
  unreadable: " (its ledger cannot be read or trusted; restated from the configuration)",
};

const ELSEWHERE = "the namespace is elsewhere\n" +
  "  the path does not lead to it, but the container lives, or was attached from another network namespace;\n" +
  "  what was made is not looked at, and 'gc --gone' leaves it";

function describe(attachment: AttachmentState<ShownResource>): string {
  const { network, containerId, ifName, netnsPath, state, plugins } = attachment;
  const head = `network ${network}, container ${containerId}, ${ifName} in ${netnsPath}`;
  if (state === "gone") {
    return `${head}: the namespace is gone\n  'patchbay del' or 'gc --gone' removes what it left behind\n`;
  }
  if (state === "elsewhere") return `${head}: ${ELSEWHERE}\n`;
  const lines = plugins.flatMap(({ plugin, madeBy, resources }) => [
    `  ${plugin}${MAKER[madeBy]}`,
    ...resources.flatMap(describeResource),
  ]);
  const isLeft = plugins.some(({ resources }) => resources.some(({ reason }) => reason !== undefined));
  return `${[head, ...lines, ...isLeft ? [stepAfterRepair(attachment)] : []].join("\n")}\n`;
}

function stepAfterRepair({ network, containerId, ifName }: AttachmentState<ShownResource>): string {
  const option = ifName === "eth0" ? "" : ` -i ${ifName}`;
  return `  what is not mended: 'patchbay del ${network} ${containerId}${option}', and 'add' after it, make it anew`;
}

function describeResource({ what, state, differences, reason }: ShownResource): string[] {
  const below = [...differences, ...reason === undefined ? [] : [`not mended: ${reason}`]];
  return [`    ${state.padEnd(8)} ${what}`, ...below.map((line) => `             ${line}`)];
}

/** A line for each attachment, and an empty line; "" when there are none. */
export function attachmentTable(attachments: readonly InspectedAttachment[]): string {
  if (attachments.length === 0) return "";
  const rows = worstFirst(attachments).map(({ network, containerId, netnsPath, ifName, addresses, ports, state }) => [
    network,
    containerId,
    namespaceName(netnsPath) || "-",
    ifName,
    addresses.join(" ") || "-",
    ports.join(" ") || "-",
    state,
  ]);
  const head = ["network", "container", "namespace", "interface", "addresses", "ports", "state"];
  return `${textTable([head, ...rows])}\n`;
}

/** A line for each attachment, and one that counts them. */
export function briefTable(attachments: readonly InspectedAttachment[]): string {
  if (attachments.length === 0) return "nothing is attached\n";
  const rows = worstFirst(attachments).map((attachment) => [
    shortId(attachment.containerId),
    namespaceName(attachment.netnsPath) || "-",
    attachment.network,
    attachment.ifName,
    attachment.addresses.join(" ") || "-",
    briefState(attachment),
  ]);
  const head = ["container", "namespace", "network", "interface", "addresses", "state"];
  const counts = ORDER.map((state) => [attachments.filter((one) => one.state === state).length, state] as const)
    .filter(([count]) => count > 0).map(([count, state]) =>
      `${count} ${count > 1 && state === "differs" ? "differ" : state}`
    );
  return `${textTable([head, ...rows])}\n${counted(attachments.length, "attachment")}: ${counts.join(", ")}\n`;
}

/** With the plugins whose work is not as they made it. */
function briefState({ state, plugins }: AttachmentState): string {
  const differing = plugins.filter(({ resources }) => resources.some((resource) => resource.state !== "ok"));
  return differing.length === 0 ? state : `${state}: ${differing.map(({ plugin }) => plugin).join(", ")}`;
}
