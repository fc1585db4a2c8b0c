/** `patchbay gc NETWORK`. */
import { emptyNetwork } from "../former.ts";
import {
  type AttachmentName,
  collectGarbage,
  isAttached,
  isGone,
  type KnownAttachment,
  staleAttachments,
  type Staying,
} from "../garbage.ts";
import { type Command, type Given, UsageError } from "./command.ts";
import { networkOf, networkOrFormer, runtimeOf, runtimeOptions } from "./network-call.ts";
import { complain, printLine } from "./print.ts";

const choices = "--gone for those whose namespace is gone, --valid ID/IFNAME for each that stays, or --all";

export const gcCommand: Command = {
  summary: "undo the attachments to a network that are gone, that are not named as valid, or all",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  needsRoot: true,
  options: {
    gone: { help: "undo those whose namespace is gone, and nothing else" },
    valid: { value: "ID/IFNAME", help: "an attachment to keep, repeat it for each; everything else goes" },
    all: { help: "keep none" },
    "dry-run": { help: "only list what would go" },
    ...runtimeOptions,
  },
  notes:
    "Attachments are known from the result cache, which other engines share, and from patchbay's ledgers. With\n" +
    "--valid and --all plugins also remove what no record names. Without a choice nothing is undone, only listed.\n",
  run(given) {
    const staying = stayingOf(given), runtime = runtimeOf(given), name = given.operands[0]!;
    const network = networkOrFormer(given, () => isAttached(runtime, name) ? emptyNetwork(name) : undefined);
    if (network.disableGC) {
      complain(`network ${network.name} has "disableGC": nothing is undone`);
      return 0;
    }
    if (typeof staying === "object") tellUnknown(staying.valid, staleAttachments(runtime, network, { valid: [] }));
    if (staying === undefined || given.has("dry-run")) {
      const stale = staleAttachments(runtime, network, staying ?? { valid: [] });
      for (const each of stale) printLine(`would delete ${nameOf(each)}${remarksOn(each)}`);
      if (staying === undefined) throw new UsageError(`say what may go: ${choices}`);
      return 0;
    }
    collectGarbage(runtime, network, staying, (stale) => {
      for (const each of stale) complain(`deleting ${nameOf(each)}`);
    });
    return 0;
  },
};

/** cnitool has no choice: what the cache knows goes. */
export const cnitoolGcCommand: Command = {
  ...gcCommand,
  summary: "undo every attachment to a network that the result cache knows",
  options: runtimeOptions,
  notes: "The result cache knows attachments of other engines too, when they share a network's name.\n",
  run(given) {
    collectGarbage(runtimeOf(given), networkOf(given), "uncached", (stale) => {
      for (const each of stale) complain(`deleting ${nameOf(each)}`);
    });
    return 0;
  },
};

function stayingOf(given: Given): Staying | undefined {
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

/** A slip in what is to stay would let it go. */
function tellUnknown(valid: readonly AttachmentName[], known: readonly KnownAttachment[]): void {
  const names = known.map(({ containerId, ifName }) => `${containerId}/${ifName}`);
  for (const { containerId, ifName } of valid) {
    const name = `${containerId}/${ifName}`;
    if (!names.includes(name)) complain(`--valid ${name}: no such attachment is known`);
  }
}

function nameOf({ network, containerId, ifName }: KnownAttachment): string {
  return `${ifName} of container ${containerId} from network ${network}`;
}

function remarksOn(attachment: KnownAttachment): string {
  const remarks = isGone(attachment) ? ["its namespace is gone"] : [];
  if (!attachment.isCached) remarks.push("not in the cache");
  return remarks.length === 0 ? "" : ` (${remarks.join(", ")})`;
}
