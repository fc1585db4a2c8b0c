/** Leases of host-local without an attachment, and attachments without their lease. */
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { counted } from "../contract/counted.ts";
import { ownerText } from "../contract/owner.ts";
import { exists, identify, isDirectory, namesIn } from "../ffi/files.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory, type LeaseOwner } from "../ipam/go-directory.ts";
import { leaseAt, listLeases } from "../ipam/take-over.ts";
import { parseAddress, parsePrefix } from "../net/address.ts";
import type { HostFinding } from "./host-findings.ts";

/** `recordedNow`: read again, because an ADD or a DEL may have come between. */
export function leaseFindings(recordedNow: () => readonly KnownAttachment[]): HostFinding[] {
  const networks = exists(DEFAULT_DATA_DIRECTORY) ? namesIn(DEFAULT_DATA_DIRECTORY) : [];
  const held = networks.map((network) => ({ network, directory: leaseDirectory(DEFAULT_DATA_DIRECTORY, network) }))
    .filter(({ directory }) => isDirectory(identify(directory)))
    .map((each) => ({ ...each, leases: listLeases(each.directory) }));
  const recorded = recordedNow(), owners = new Set(recorded.map(ownerText));
  // A lease file of one line, as Go's plugin once wrote it, names no interface.
  const isRecorded = (network: string, { containerId, ifName }: LeaseOwner) =>
    ifName === undefined
      ? recorded.some((one) => one.network === network && one.containerId === containerId)
      : owners.has(ownerText({ network, containerId, ifName }));
  const unheld = held.flatMap(({ network, directory, leases }): HostFinding[] => {
    const nobodys = leases.filter(({ owner, address }) =>
      owner !== undefined && !isRecorded(network, owner) && leaseAt(directory, parseAddress(address)!) !== undefined
    );
    const [first] = nobodys;
    if (first === undefined) return [];
    const what = `${counted(nobodys.length, "lease")} of ${network} without an attachment on record`;
    const text = `${what}, such as ${first.address} of ${first.owner!.containerId}: 'patchbay ipam list ${network}'`;
    return [{ code: "lease-unheld", text }];
  });
  return [...unheld, ...recorded.flatMap(withoutLease)];
}

function withoutLease(attachment: KnownAttachment): HostFinding[] {
  const { network, containerId, ifName } = attachment, directory = leaseDirectory(DEFAULT_DATA_DIRECTORY, network);
  if (!exists(directory) || !isOfHostLocal(attachment)) return [];
  return gistOf(attachment).addresses.flatMap((text): HostFinding[] => {
    const lease = leaseAt(directory, parsePrefix(text)!.bytes), holder = lease?.owner;
    if (holder?.containerId === containerId && holder.ifName === ifName) return [];
    const others = holder === undefined ? "" : `, and ${holder.containerId} has one for it`;
    const of = `${text.split("/")[0]!} of ${containerId}, network ${network}`;
    return [{ code: "lease-missing", text: `${of}, has no lease of its own${others}: another may get it` }];
  });
}

/** Its addresses are all leased by host-local. */
function isOfHostLocal({ ledgers }: KnownAttachment): boolean {
  const types = ledgers.flatMap(({ adds }) =>
    adds.at(-1)!.entries.filter(({ kind }) => kind === "ipam").map(({ spec }) => (spec as { type?: string }).type)
  );
  return types.length > 0 && types.every((type) => type === "host-local");
}
