/** `patchbay gc NETWORK`. */
import {
  type AttachmentName,
  collectGarbage,
  isGone,
  type Keep,
  staleAttachments,
  unconfiguredNetwork,
} from "../../gc.ts";
import type { RecordedAttachment } from "../../recorded-attachments.ts";
import { type Command, type Given, UsageError } from "../command.ts";
import { networkOf, networkOrRecorded, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { printLine, printToStderr } from "../output.ts";

const choices = "--gone for those whose namespace is gone, --valid ID/IFNAME for each that stays, or --all";

export const gcCommand: Command = {
  summary: "delete the attachments to a network that are gone, that are not named as valid, or all",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  needsRoot: true,
  options: {
    gone: { help: "delete only attachments whose namespace is gone" },
    valid: { value: "ID/IFNAME", help: "keep this attachment and delete the others; may be repeated" },
    all: { help: "delete every attachment" },
    "dry-run": { help: "only list what would be deleted" },
    ...runtimeOptions,
  },
  notes:
    "Attachments are known from the result cache, which other engines share, and from patchbay's ledgers. With\n" +
    "--valid and --all, plugins also remove what no record names. Without a choice, gc only lists the attachments.\n",
  run(given) {
    const keep = keepOf(given), runtime = runtimeOf(given), name = given.operands[0]!;
    const network = networkOrRecorded(given, () => unconfiguredNetwork(runtime, name));
    if (network.disableGC) {
      printToStderr(`network ${network.name} has "disableGC": nothing is deleted`);
      return 0;
    }
    if (typeof keep === "object") warnOfUnknown(keep.valid, staleAttachments(runtime, network, { valid: [] }));
    if (keep === undefined || given.has("dry-run")) {
      const stale = staleAttachments(runtime, network, keep ?? { valid: [] });
      for (const each of stale) printLine(`would delete ${nameOf(each)}${remarksOn(each)}`);
      if (keep === undefined) throw new UsageError(`say what may go: ${choices}`);
      return 0;
    }
    collectGarbage(runtime, network, keep, printDeletions);
    return 0;
  },
};

/** cnitool offers no choice: it deletes what the cache has. */
export const cnitoolGcCommand: Command = {
  ...gcCommand,
  summary: "delete every attachment to a network that the result cache has",
  options: runtimeOptions,
  notes: "The result cache also has attachments of other engines, when they use the same network name.\n",
  run(given) {
    collectGarbage(runtimeOf(given), networkOf(given), "uncached", printDeletions);
    return 0;
  },
};

function keepOf(given: Given): Keep | undefined {
  const valid = given.values("valid").map((text) => {
    const [containerId, ifName, ...more] = text.split("/");
    if (!containerId || !ifName || more.length > 0) throw new UsageError(`--valid ${text} is not ID/IFNAME`);
    return { containerId, ifName };
  });
  const chosen = ["gone", "valid", "all"].filter((option) => given.has(option));
  if (chosen.length > 1) throw new UsageError(`--${chosen[0]} and --${chosen[1]} exclude each other`);
  switch (chosen[0]) {
    case "gone":
      return "live";
    case undefined:
      return undefined;
  }
  return { valid };
}

/** An attachment whose name is misspelt after --valid would be deleted. */
function warnOfUnknown(valid: readonly AttachmentName[], known: readonly RecordedAttachment[]): void {
  const names = known.map(({ containerId, ifName }) => `${containerId}/${ifName}`);
  for (const { containerId, ifName } of valid) {
    const name = `${containerId}/${ifName}`;
    if (!names.includes(name)) printToStderr(`--valid ${name}: no such attachment is known`);
  }
}

function printDeletions(stale: readonly RecordedAttachment[]): void {
  for (const each of stale) printToStderr(`deleting ${nameOf(each)}`);
}

function nameOf({ network, containerId, ifName }: RecordedAttachment): string {
  return `${ifName} of container ${containerId} from network ${network}`;
}

function remarksOn(attachment: RecordedAttachment): string {
  const remarks = isGone(attachment) ? ["its namespace is gone"] : [];
  if (!attachment.isCached) remarks.push("not in the cache");
  return remarks.length === 0 ? "" : ` (${remarks.join(", ")})`;
}
