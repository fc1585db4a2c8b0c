/**
 * Attachments as the ledgers tell of them, for `inspect` and `repair`: what each plugin made, with nothing known of the
 * network's configuration of today.
 */
import type { IpConfig } from "../cni/result.ts";
import { loadKind } from "../resources/table.ts";
import { delegatingKind } from "./delegation.ts";
import { type LedgerHeader, type LedgerRecord, listAllLedgers } from "./ledger.ts";
import type { AnyKind, Owner } from "./resource.ts";
import type { Invocation } from "./run.ts";

export interface RecordedAttachment extends Owner {
  netnsPath: string;
  /** One a plugin; first the one that made the container's link. */
  ledgers: LedgerRecord[];
}

export function listAttachments(network?: string, containerId?: string): RecordedAttachment[] {
  const found = new Map<string, RecordedAttachment>();
  const makesLink = ({ entries }: LedgerRecord) => entries.some(({ kind }) => loadKind(kind)?.isContainerLink);
  const rank = (record: LedgerRecord) => `${makesLink(record) ? 0 : 1} ${record.header.plugin}`;
  for (const record of listAllLedgers().sort((one, other) => rank(one).localeCompare(rank(other)))) {
    const { network: name, containerId: id, ifName, netnsPath } = record.header;
    if ((network ?? name) !== name || (containerId ?? id) !== id) continue;
    const attachment = found.getOrInsertComputed(`${name} ${id} ${ifName}`, () => ({
      network: name,
      containerId: id,
      ifName,
      netnsPath,
      ledgers: [],
    }));
    attachment.ledgers.push(record);
  }
  return [...found.values()].sort((one, other) =>
    one.network.localeCompare(other.network) || one.containerId.localeCompare(other.containerId) ||
    one.ifName.localeCompare(other.ifName)
  );
}

/** A resource of a ledger; no kind where a newer version of this program wrote it. */
export interface RecordedResource {
  name: string;
  kind: AnyKind | undefined;
  spec: unknown;
}

/** `pluginPath` is where the plugins are found that verbs are passed on to. */
export function resourcesOf({ header, entries }: LedgerRecord, pluginPath: string): RecordedResource[] {
  const ips: IpConfig[] = entries.filter(({ kind }) => kind === "addressing")
    .flatMap(({ spec }) => (spec as { addresses: IpConfig[] }).addresses);
  const invocation = invocationOf(header, pluginPath, ips);
  return entries.map(({ kind, spec }) => ({
    name: kind,
    kind: delegatingKind(kind, invocation) ?? loadKind(kind),
    spec,
  }));
}

/**
 * CHECK, which others do in our stead, asks for a result, and for a version that knows CHECK. Of the result, the ledger
 * knows the link's name and the addresses.
 */
function invocationOf({ stdin, ...header }: LedgerHeader, path: string, ips: IpConfig[]): Invocation {
  const cniVersion = "1.0.0";
  const interfaces = [{ name: header.ifName, sandbox: header.netnsPath }];
  const prevResult = { cniVersion, interfaces, ips: ips.map(({ address, gateway }) => ({ address, gateway })) };
  const document = { ...JSON.parse(stdin), cniVersion, prevResult };
  return { ...header, command: "CHECK", path, stdin: JSON.stringify(document), document };
}
