/** Leases of host-local and of pools without an attachment, and attachments without their lease. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { undefinedOnError } from "../cni/error.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import { counted } from "../contract/counted.ts";
import { ownerText } from "../contract/owner.ts";
import { entriesIn, exists, identify, isDirectory } from "../ffi/files.ts";
import { DEFAULT_DATA_DIRECTORY, DEFAULT_POOLS_DIRECTORY, leaseDirectory } from "../ipam/go-directory.ts";
import { leaseAt, type LeaseFile, listLeases } from "../ipam/take-over.ts";
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
  const places = [...defaultPlaces(), ...placesElsewhere(index)];
  const held = places.flatMap((place) => listLeases(directoryOf(place)).map((lease) => heldAt(place, lease)));
  const recorded = recordedNow(), owners = new Set(recorded.map(ownerText));
  // A lease file of one line, as Go's plugin once wrote it, names no interface.
  const isRecorded = ({ network, owner: { containerId, ifName } }: HeldAt) =>
    ifName === undefined
      ? recorded.some((one) => one.network === network && one.containerId === containerId)
      : owners.has(ownerText({ network, containerId, ifName }));
  const nobodys = held.flatMap((lease) => lease ?? []).filter((lease) =>
    !isRecorded(lease) && leaseAt(directoryOf(lease.place), parseAddress(lease.address)!) !== undefined
  );
  const byNetwork = Map.groupBy(nobodys, ({ place, network }) => `${directoryOf(place)} ${network}`);
  const unheld = [...byNetwork.values()].map((leases): HostFinding => {
    const { network, place, address, owner } = leases[0]!;
    const what = `${counted(leases.length, "lease")} of ${network} without an attachment on record`;
    const text = `${what}, such as ${address} of ${owner.containerId}: '${listing(place, network)}'`;
    return { code: "lease-unheld", text };
  });
  return [...unheld, ...recorded.flatMap((one) => withoutLease(one, nameOf))];
}

/** A folder of leases: a network's, or a pool's, where each lease says its network. */
interface Place {
  dataDirectory: string;
  folder: string;
  isPool: boolean;
}

function directoryOf({ dataDirectory, folder }: Place): string {
  return leaseDirectory(dataDirectory, folder);
}

interface HeldAt {
  place: Place;
  network: string;
  address: string;
  owner: NonNullable<LeaseFile["owner"]>;
}

/** Undefined for what people have put there. */
function heldAt(place: Place, { address, owner }: LeaseFile): HeldAt | undefined {
  const network = place.isPool ? owner?.inNetwork : place.folder;
  return owner === undefined || network === undefined ? undefined : { place, network, address, owner };
}

function listing({ dataDirectory, folder }: Place, network: string): string {
  return DEFAULTS.includes(dataDirectory)
    ? `patchbay ipam list ${network}`
    : `patchbay ipam list ${folder} --data-dir ${shellWord(dataDirectory)}`;
}

const DEFAULTS = [DEFAULT_DATA_DIRECTORY, DEFAULT_POOLS_DIRECTORY];

/** A link may lead to another network's leases, and a file system or a person puts other directories there. */
function defaultPlaces(): Place[] {
  return DEFAULTS.flatMap((dataDirectory) => {
    const entries = exists(dataDirectory) ? entriesIn(dataDirectory) : [];
    const isPool = dataDirectory === DEFAULT_POOLS_DIRECTORY;
    return entries.filter(({ kind }) => kind === "directory").map(({ name }) => ({
      dataDirectory,
      folder: name,
      isPool,
    }));
  }).filter((place) => undefinedOnError(() => directoryOf(place)) !== undefined);
}

/** Nobody knows a directory of a network's own when no attachment of it is on record. */
function placesElsewhere({ holders }: AttachmentIndex): Place[] {
  const places = new Map<string, Place>();
  for (const place of [...holders.values()].flat().flatMap(placesOf)) {
    if (!DEFAULTS.includes(place.dataDirectory)) places.set(directoryOf(place), place);
  }
  return [...places].filter(([directory]) => undefinedOnError(() => isDirectory(identify(directory, false))))
    .map(([, place]) => place);
}

function withoutLease(attachment: KnownAttachment, nameOf: NameOf): HostFinding[] {
  const { network, containerId, ifName } = attachment;
  const directories = placesOf(attachment).map(directoryOf);
  if (directories.length === 0 || !directories.every(exists)) return [];
  return gistOf(attachment).addresses.flatMap((text): HostFinding[] => {
    const holders = directories.flatMap((directory) => leaseAt(directory, parsePrefix(text)!.bytes)?.owner ?? []);
    const isItsOwn = (holder: HeldAt["owner"]) =>
      holder.containerId === containerId && holder.ifName === ifName && (holder.inNetwork ?? network) === network;
    if (holders.some(isItsOwn)) return [];
    const others = holders[0] === undefined ? "" : `, and ${holders[0].containerId} has one for it`;
    const of = `${text.split("/")[0]!} of ${nameAndId(attachment, nameOf)}, network ${network}`;
    return [{ code: "lease-missing", text: `${of}, has no lease of its own${others}: another may get it` }];
  });
}

/** Where its leases are, by the configuration of its ADD; none unless all its addresses are leased there. */
function placesOf({ network, ledgers }: KnownAttachment): Place[] {
  const found = ledgers.map(({ adds }) => adds.at(-1)!).flatMap(({ entries, header }) =>
    entries.filter(({ kind }) => kind === "ipam").map(({ spec }) =>
      placesIn(header.stdin, network, (spec as { type?: string }).type)
    )
  );
  return new Set(found.map((places) => JSON.stringify(places))).size === 1 ? found[0]! : [];
}

function placesIn(configuration: string, network: string, type: string | undefined): Place[] {
  const document = undefinedOnError(() => parseDocument(configuration, ""));
  const ipam = isObject(document) ? field(document, "ipam") : undefined;
  if (!isObject(ipam)) return [];
  const isPool = type === "patchbay-cluster", pools = field(ipam, "pools"), pool = field(ipam, "pool");
  if (!isPool && type !== "host-local") return [];
  const folders = isPool ? Array.isArray(pools) ? pools : [pool] : [network];
  const dataDirectory = field(ipam, "dataDir") ?? (isPool ? DEFAULT_POOLS_DIRECTORY : DEFAULT_DATA_DIRECTORY);
  if (typeof dataDirectory !== "string" || !dataDirectory.startsWith("/")) return [];
  return folders.filter((folder) => typeof folder === "string").map((folder) => ({ dataDirectory, folder, isPool }))
    .filter((place) => undefinedOnError(() => directoryOf(place)) !== undefined);
}
