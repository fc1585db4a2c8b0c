/** `patchbay gc [NETWORK]`. */
import { operandsOf } from "../shown-attachments.ts";
import { collectFailures, throwJoined } from "../../../contract/failures.ts";
import type { AttachmentName } from "../../../contract/summaries.ts";
import { collectGarbage, type Keep, mayBeGone, staleAttachments, unconfiguredNetwork } from "../../../runtime/gc.ts";
import { removeAllEmptyLedgers, removeEmptyLedgers } from "../../../engine/ledger/ledger.ts";
import { isNamespaceGone } from "../../../engine/operator/inspect.ts";
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import type { Runtime } from "../../../runtime/plugin-call.ts";
import { knownAttachments, type RecordedAttachment } from "../../../runtime/records.ts";
import { closestName } from "../../../cni/spelling.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { namedBy, whyTooShort, withName } from "../named-attachments.ts";
import {
  DIGITS_TO_REMOVE,
  givenNetwork,
  networkOrRecorded,
  runtimeOf,
  runtimeOptions,
  tellUnconfigured,
} from "../network-arguments.ts";
import { printJson, printLine, printToStderr } from "../../../process/output.ts";

const choices =
  "--gone deletes those whose namespace is gone, --valid CONTAINER/IFNAME all but those named, --all every one";

export const gcCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "delete the attachments to a network that are gone, that are not named as valid, or all",
  operands: "[NETWORK]",
  operandCount: [0, 1],
  needsRoot: true,
  options: {
    gone: { help: "delete only attachments whose namespace is gone; without NETWORK, of all networks" },
    valid: { value: "CONTAINER/IFNAME", help: "keep this one, delete all others of NETWORK; may be repeated" },
    all: { help: "delete every attachment" },
    "dry-run": { help: "only list what would be deleted" },
    json: { help: "print what is deleted, or listed, as JSON" },
    ...runtimeOptions,
  },
  notes:
    "Attachments are known from the result cache, which other engines share, and from patchbay's ledgers. With\n" +
    "--valid and --all, plugins also remove what no record names. Without a choice, gc only lists the attachments.\n" +
    "CONTAINER is the container's ID, at least twelve digits of one that is a hash, its network namespace, or its\n" +
    "engine's name for it.\n" +
    "A namespace that a program still holds open is not gone, for example while the DHCP service asks for an address.\n",
  exitStatus: "1 when an attachment could not be deleted. The others are deleted all the same.",
  examples: [
    { args: "", what: "list all attachments, and whose namespace is gone" },
    { args: "--gone", what: "delete what containers have left that are gone" },
    { args: "first --all --dry-run", what: "list what would be deleted if nothing of the network first should stay" },
  ],
  run(given) {
    const chosen = choiceOf(given), runtime = runtimeOf(given), [name] = given.operands;
    if (name === undefined && (chosen === "valid" || chosen === "all")) {
      throw new UsageError(`--${chosen} needs the NETWORK's name`);
    }
    for (const text of given.values("valid")) partsOf(text);
    const found: ReturnType<typeof inJson>[] = [], isInJson = given.has("json");
    // All networks share one: it waits for namespaces that are ending, and an operator reads what it shows.
    const counts: number[] = [], view = new HostView();
    const list: List = (attachments, describe) => {
      counts.push(attachments.length);
      if (isInJson) found.push(...attachments.map((each) => inJson(each, view)));
      else attachments.forEach(describe);
    };
    const networks: FoundNetwork[] = [], names = name === undefined ? recordedNetworks(runtime) : [name];
    // Finds all before it deletes anything.
    const failures = collectFailures(names, (each) => {
      networks.push(networkOrRecorded(given, each, () => unconfiguredNetwork(runtime, each)));
    });
    failures.push(...collectFailures(networks, (each) => collect(given, each, chosen, list, view)));
    if (chosen !== undefined && !given.has("dry-run")) {
      failures.push(
        ...collectFailures([name], (each) => each === undefined ? removeAllEmptyLedgers() : removeEmptyLedgers(each)),
      );
    }
    if (isInJson && (found.length > 0 || failures.length === 0)) printJson(found);
    throwJoined(failures, "\n");
    // A network with "disableGC" has no count.
    const isNothing = counts.length === names.length && counts.every((count) => count === 0);
    if (isNothing && !isInJson) tellNothing(chosen, given);
    else if (chosen === undefined) printToStderr(`nothing is deleted without a choice: ${choices}`);
    return 0;
  },
};

function tellNothing(chosen: Choice | undefined, given: GivenArguments): void {
  const [name] = given.operands;
  if (chosen === undefined) printLine(`nothing is attached${name === undefined ? "" : ` to network ${name}`}`);
  else if (given.has("dry-run")) printLine("nothing would be deleted");
}

/** Keeps the attachments for JSON, or lets `describe` print each. */
type List = (attachments: readonly RecordedAttachment[], describe: (attachment: RecordedAttachment) => void) => void;

type FoundNetwork = ReturnType<typeof networkOrRecorded>;

function collect(
  given: GivenArguments,
  { network, isConfigured }: FoundNetwork,
  chosen: Choice | undefined,
  list: List,
  view: HostView,
): void {
  const runtime = runtimeOf(given);
  if (network.disableGC) return printToStderr(`network ${network.name} has "disableGC": nothing is deleted`);
  const all = staleAttachments(runtime, network, { valid: [] });
  if (chosen === undefined) return list(all, (each) => printLine(`${nameOf(each)}${remarksOn(each, view)}`));
  if (chosen === "gone") {
    for (const each of all.filter((one) => mayBeGone(one, view))) {
      printToStderr(`${nameOf(each)} stays: ${UNCERTAIN}; when it is, 'patchbay del ${operandsOf(each)}' removes it`);
    }
  }
  const keep: Keep = chosen === "gone"
    ? "live"
    : { valid: given.values("valid").flatMap((text) => validOf(text, all)) };
  if (given.has("dry-run")) {
    const describe = (each: RecordedAttachment) => printLine(`would delete ${nameOf(each)}${remarksOn(each, view)}`);
    return list(staleAttachments(runtime, network, keep), describe);
  }
  collectGarbage(runtime, network, keep, (stale) => {
    if (!isConfigured && stale.length > 0) tellUnconfigured(given, network.name);
    list(stale, tellDeletion);
  });
}

function inJson(attachment: RecordedAttachment, view: HostView) {
  const { network, containerId, ifName, netnsPath, isCached } = attachment;
  return { network, containerId, ifName, netnsPath, isGone: isNamespaceGone(attachment.recorded, view), isCached };
}

/** cnitool offers no choice: it deletes what the cache has. */
export const cnitoolGcCommand: Command = {
  ...gcCommand,
  summary: "delete every attachment to a network that the result cache has",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  options: runtimeOptions,
  notes: "The result cache also has attachments of other engines, when they use the same network name.\n",
  examples: [],
  run(given) {
    const runtime = runtimeOf(given), network = givenNetwork(given);
    collectGarbage(runtime, network, "uncached", (stale) => stale.forEach(tellDeletion));
    return 0;
  },
};

type Choice = "gone" | "valid" | "all";

function choiceOf(given: GivenArguments): Choice | undefined {
  const [chosen, another] = (["gone", "valid", "all"] as const).filter((option) => given.has(option));
  if (another !== undefined) throw new UsageError(`--${chosen} and --${another} exclude each other`);
  return chosen;
}

/** The container's name may be a path. */
function partsOf(text: string): { container: string; ifName: string } {
  const slash = text.lastIndexOf("/"), container = text.slice(0, slash), ifName = text.slice(slash + 1);
  if (slash < 1 || ifName === "") throw new UsageError(`--valid ${text} is not CONTAINER/IFNAME`);
  return { container, ifName };
}

/** A misspelt name would delete the attachment that was meant. */
function validOf(text: string, all: readonly RecordedAttachment[]): AttachmentName[] {
  const { container, ifName } = partsOf(text);
  const known = all.map(({ recorded }) => recorded);
  const found = namedBy(container, known.filter((one) => one.ifName === ifName), DIGITS_TO_REMOVE);
  if (found.length > 0) return found;
  const meant = closestName(text, all.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
  const guess = meant === undefined ? undefined : `did you mean ${meant}?`;
  const next = whyTooShort(container, known) ?? guess, hint = next === undefined ? "" : `; ${next}`;
  throw new Error(`--valid ${text}: no such attachment is known, so nothing is deleted${hint}`);
}

function tellDeletion(attachment: RecordedAttachment): void {
  printToStderr(`deleting ${nameOf(attachment)}`);
}

function recordedNetworks(runtime: Runtime): string[] {
  return [...new Set(knownAttachments(runtime).map(({ network }) => network))];
}

function nameOf({ network, ifName, recorded }: RecordedAttachment): string {
  return `${ifName} of container ${withName(recorded)} from network ${network}`;
}

const UNCERTAIN = "no record shows whether its namespace is gone";

function remarksOn(attachment: RecordedAttachment, view: HostView): string {
  const remarks = isNamespaceGone(attachment.recorded, view) ? ["its namespace is gone"] : [];
  if (mayBeGone(attachment, view)) remarks.push(UNCERTAIN);
  if (!attachment.isCached) remarks.push("not in the cache");
  return remarks.length === 0 ? "" : ` (${remarks.join(", ")})`;
}
