/** Leases of host-local without an attachment, and attachments without their lease. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { undefinedOnError } from "../cni/error.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import { counted } from "../contract/counted.ts";
import { ownerText } from "../contract/owner.ts";
import { entriesIn, exists, identify, isDirectory } from "../ffi/files.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory, type LeaseOwner } from "../ipam/go-directory.ts";
import { leaseAt, listLeases } from "../ipam/take-over.ts";
import { parseAddress, parsePrefix } from "../net/address.ts";
import { shellWord } from "../process/shell-word.ts";
import type { AttachmentIndex } from "./attachment-index.ts";
import { type HostFinding, nameAndId, type NameOf } from "./host-findings.ts";

/** `recordedNow`: read again, because an ADD or a DEL may have come between. */
export function leaseFindings(
  index: AttachmentIndex,
  recordedNow: () => readonly KnownAttachment[],
  nameOf: NameOf,
): HostFinding[] {
  const held = [...defaultPlaces(), ...placesElsewhere(index)]
    .map((place) => ({ ...place, leases: listLeases(directoryOf(place)) }));
  const recorded = recordedNow(), owners = new Set(recorded.map(ownerText));
  // A lease file of one line, as Go's plugin once wrote it, names no interface.
  const isRecorded = (network: string, { containerId, ifName }: LeaseOwner) =>
    ifName === undefined
      ? recorded.some((one) => one.network === network && one.containerId === containerId)
      : owners.has(ownerText({ network, containerId, ifName }));
  const unheld = held.flatMap(({ leases, ...place }): HostFinding[] => {
    const { network, dataDirectory } = place, directory = directoryOf(place);
    const nobodys = leases.filter(({ owner, address }) =>
      owner !== undefined && !isRecorded(network, owner) && leaseAt(directory, parseAddress(address)!) !== undefined
    );
    const [first] = nobodys;
    if (first === undefined) return [];
    const what = `${counted(nobodys.length, "lease")} of ${network} without an attachment on record`;
    const option = dataDirectory === DEFAULT_DATA_DIRECTORY ? "" : ` --data-dir ${shellWord(dataDirectory)}`;
    const command = `patchbay ipam list ${network}${option}`;
    const text = `${what}, such as ${first.address} of ${first.owner!.containerId}: '${command}'`;
    return [{ code: "lease-unheld", text }];
  });
  return [...unheld, ...recorded.flatMap((one) => withoutLease(one, nameOf))];
}

interface Place {
  dataDirectory: string;
  network: string;
}

function directoryOf({ dataDirectory, network }: Place): string {
  return leaseDirectory(dataDirectory, network);
}

/** A link may lead to another network's leases, and a file system or a person puts other directories there. */
function defaultPlaces(): Place[] {
  const dataDirectory = DEFAULT_DATA_DIRECTORY, entries = exists(dataDirectory) ? entriesIn(dataDirectory) : [];
  return entries.filter(({ kind }) => kind === "directory").map(({ name }) => ({ dataDirectory, network: name }))
    .filter((place) => undefinedOnError(() => directoryOf(place)) !== undefined);
}

/** Nobody knows a directory of a network's own when no attachment of it is on record. */
function placesElsewhere({ holders }: AttachmentIndex): Place[] {
  const places = new Map<string, Place>();
  for (const attachment of [...holders.values()].flat()) {
    const dataDirectory = dataDirectoryOf(attachment), { network } = attachment;
    if (dataDirectory === undefined || dataDirectory === DEFAULT_DATA_DIRECTORY) continue;
    const place = { dataDirectory, network };
    places.set(directoryOf(place), place);
  }
  return [...places].filter(([directory]) => undefinedOnError(() => isDirectory(identify(directory, false))))
    .map(([, place]) => place);
}

function withoutLease(attachment: KnownAttachment, nameOf: NameOf): HostFinding[] {
  const { network, containerId, ifName } = attachment, dataDirectory = dataDirectoryOf(attachment);
  if (dataDirectory === undefined) return [];
  const directory = directoryOf({ dataDirectory, network });
  if (!exists(directory)) return [];
  return gistOf(attachment).addresses.flatMap((text): HostFinding[] => {
    const lease = leaseAt(directory, parsePrefix(text)!.bytes), holder = lease?.owner;
    if (holder?.containerId === containerId && holder.ifName === ifName) return [];
    const others = holder === undefined ? "" : `, and ${holder.containerId} has one for it`;
    const of = `${text.split("/")[0]!} of ${nameAndId(attachment, nameOf)}, network ${network}`;
    return [{ code: "lease-missing", text: `${of}, has no lease of its own${others}: another may get it` }];
  });
}

/** With folders of leases, by the configuration of its ADD; undefined unless host-local leased all its addresses there. */
function dataDirectoryOf({ ledgers }: KnownAttachment): string | undefined {
  const found = ledgers.map(({ adds }) => adds.at(-1)!).flatMap(({ entries, header }) =>
    entries.filter(({ kind }) => kind === "ipam").map(({ spec }) =>
      (spec as { type?: string }).type === "host-local" ? dataDirectoryIn(header.stdin) : undefined
    )
  );
  return new Set(found).size === 1 ? found[0] : undefined;
}

function dataDirectoryIn(configuration: string): string | undefined {
  const document = undefinedOnError(() => parseDocument(configuration, ""));
  const ipam = isObject(document) ? field(document, "ipam") : undefined;
  if (!isObject(ipam)) return undefined;
  const directory = field(ipam, "dataDir") ?? DEFAULT_DATA_DIRECTORY;
  return typeof directory === "string" && directory.startsWith("/") ? directory : undefined;
}
