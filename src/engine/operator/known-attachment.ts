/**
 * The known attachments, for `inspect` and `repair`. Ledgers record what each of our plugins made, independent of the
 * current configuration; the runtime's cache also has what foreign plugins made.
 */
import { errorText } from "../../cni/error.ts";
import type { Invocation } from "../../cni/invocation.ts";
import { asWritten, field, isObject, type ParsedObject } from "../../cni/json.ts";
import { convertResult, parsePrevResult, resultDocument } from "../../cni/result-versions.ts";
import type { Interface, IpConfig, Result } from "../../cni/result.ts";
import { configVersion, CURRENT_VERSION } from "../../cni/versions.ts";
import { pluginNamed } from "../../plugins/table.ts";
import { loadKind } from "../../resources/table.ts";
import { prevResultOf } from "../attachment.ts";
import { knownPlugin } from "../delegation/find-plugin.ts";
import { containerNames } from "./container-names.ts";
import { confirmedAdd, hasLinkOf } from "../ledger/confirmation.ts";
import type { Host } from "../../contract/host.ts";
import { idAt } from "../../ffi/files.ts";
import { listAddresses } from "../../ffi/netlink/route/address.ts";
import { getLink, listLinks } from "../../ffi/netlink/route/link.ts";
import { canonicalPrefix, formatPrefix } from "../../net/address.ts";
import { listAllLedgers, listLedgersOfContainer } from "../ledger/ledger.ts";
import { newerAdd } from "../ledger/newer.ts";
import { ledgerPath } from "../ledger/paths.ts";
import type { LedgerAdd, LedgerRecord } from "../ledger/record.ts";
import type { AnyKind, HostEnd } from "../../contract/resource.ts";
import { type Owner, ownerText } from "../../contract/owner.ts";
import { judge } from "../judging.ts";
import { restate } from "../restating.ts";
import { openSession } from "../run.ts";
import { onHost } from "../on-host.ts";
import { isOtherNamespace, type Opened } from "../open-host.ts";
import type { Gist, MadeBy } from "../../contract/summaries.ts";

/** An attachment in the runtime's cache, with the configuration that each plugin would get now. */
export interface CachedAttachment extends Owner {
  netnsPath: string;
  cniArgs: string;
  plugins: { type: string; document: Record<string, unknown> }[];
}

/** What ledgers and cache have of an attachment. src/runtime/records.ts lists the other types of attachments. */
export interface KnownAttachment extends Owner {
  netnsPath: string;
  /** What engines call the container. */
  names: string[];
  /** One for each plugin; the one with the container's link comes first. */
  ledgers: LedgerRecord[];
  cached?: CachedAttachment;
}

/** The part of an attachment that one plugin made. */
export interface KnownPart {
  plugin: string;
  madeBy: MadeBy;
  record?: LedgerRecord;
  /** Container.cookie at the time of ADD, when a ledger records it. */
  netns?: string;
  /** The host for verifying the resources: delegates get the configuration of the ADD that made the part. */
  host: Host;
  resources: KnownResource[];
}

/** `kind` is undefined when a newer version of this program wrote the ledger. */
export interface KnownResource {
  name: string;
  kind: AnyKind | undefined;
  spec: unknown;
  /** Restated from configuration and result, not read from a ledger. */
  isRestated?: true;
}

/** Lists the attachments of all containers, or of one. */
export function listAttachments(cached: readonly CachedAttachment[] = [], containerId?: string): KnownAttachment[] {
  const found = new Map<string, KnownAttachment>();
  const makesLink = ({ entries }: LedgerRecord) => entries.some(({ kind }) => loadKind(kind)?.isContainerLink);
  const rank = (record: LedgerRecord) => `${makesLink(record) ? 0 : 1} ${record.header.plugin}`;
  const ledgers = containerId === undefined ? listAllLedgers() : listLedgersOfContainer(containerId);
  const foundAs = ({ network, containerId, ifName, netnsPath }: Owner & Pick<KnownAttachment, "netnsPath">) => {
    const none = () => ({ network, containerId, ifName, netnsPath, names: [], ledgers: [] });
    return found.getOrInsertComputed(ownerText({ network, containerId, ifName }), none);
  };
  for (const record of ledgers.sort((one, other) => rank(one).localeCompare(rank(other)))) {
    foundAs(record.header).ledgers.push(record);
  }
  for (const one of cached) foundAs(one).cached = one;
  for (const attachment of found.values()) attachment.names = containerNames(attachment);
  return [...found.values()].sort((one, other) => ownerText(one).localeCompare(ownerText(other)));
}

/**
 * The parts that should exist, by the rule of confirmation.ts: the cached result decides which ADD counts. When that
 * result's link is not there any more, the ledger's last ADD counts.
 */
export function partsOf({ ledgers, cached }: KnownAttachment, opened: Opened, pluginPath: string): KnownPart[] {
  const parts: KnownPart[] = [], result = cached && resultIn(cached);
  const cacheCounts = result !== undefined && (ledgers.length === 0 || isThere(result, cached!.ifName, opened));
  const session = openSession();
  for (const record of ledgers) {
    const add = cacheCounts
      ? confirmedAdd(record, result) ?? newerAdd(record)
      : record.adds.findLast(({ answer }) => answer) ?? record.adds.at(-1);
    if (add === undefined) continue;
    const { plugin, netns } = add.header;
    const host = session.hostOf(opened, recordedInvocation(add, pluginPath));
    parts.push({ plugin, madeBy: "patchbay", record, netns, host, resources: resourcesOf(add) });
  }
  const recorded = parts.flatMap(({ record }) => record!.adds.map(typeOf)),
    chain = cacheCounts ? cached!.plugins : [];
  for (const { type, document } of chain) {
    if (recorded.includes(type)) continue;
    const plugin = ourPlugin(type, chain.map((other) => other.type), pluginPath);
    const isUnread = plugin !== undefined && ledgers.every(({ header }) => header.plugin !== plugin) &&
      idAt(ledgerPath(cached!, plugin)) !== undefined;
    const hostIn = (invocation: Invocation) => session.hostOf(opened, invocation);
    const checked = () => checkable(document, cached!.ifName, opened);
    parts.push(restatedPart(cached!, type, checked, isUnread ? "unreadable" : "others", pluginPath, hostIn));
  }
  return parts;
}

/** As the network named the plugin. */
function typeOf({ header: { stdin, plugin } }: LedgerAdd): string {
  const document: unknown = JSON.parse(stdin), type = isObject(document) ? field(document, "type") : undefined;
  return typeof type === "string" ? type : plugin;
}

/**
 * The plugin whose ledger the type has, if it is ours. Without plugin directories, a name with a prefix is ours unless the
 * chain has the plain name, too.
 */
function ourPlugin(type: string, chain: readonly string[], pluginPath: string): string | undefined {
  const name = pluginNamed(type) ?? type;
  if (name === type) return name;
  if (pluginPath === "") return chain.includes(name) ? undefined : name;
  return knownPlugin(type, pluginPath)?.name;
}

/** Whether the container has the link that the cached result names. */
export function isConfirmed({ cached, ifName }: KnownAttachment, opened: Opened): boolean {
  const result = cached && resultIn(cached);
  return result !== undefined && isThere(result, ifName, opened);
}

/** Whether a record says that the namespace is this one, by the kernel's number or by the link. Addresses anybody can have. */
export function isProven({ ledgers, cached, ifName }: KnownAttachment, opened: Opened): boolean {
  const result = cached && resultIn(cached);
  return ledgers.some(({ header }) => !isOtherNamespace(opened, header.netns)) ||
    (result !== undefined && hasLinkOf(result, ifName, opened));
}

/** A result before 0.3.0 names no links. Then the container's link has its addresses. */
function isThere(result: Result, ifName: string, opened: Opened): boolean {
  const { interfaces, ips = [] } = result, { container } = opened;
  if (interfaces !== undefined || container === undefined) return hasLinkOf(result, ifName, opened);
  const link = getLink(container.route, ifName);
  if (link === undefined || ips.length === 0) return false;
  const found = listAddresses(container.route, link.index).map(formatPrefix);
  return ips.every(({ address }) => found.includes(canonicalPrefix(address) ?? address));
}

/** An attachment of which no record says where it is, when it is the one in this namespace. */
export function placedIn(attachment: KnownAttachment, netnsPath: string): KnownAttachment | undefined {
  const { cached } = attachment;
  if (attachment.netnsPath !== "" || cached === undefined) return undefined;
  const isHere = onHost((opened) => isConfirmed(attachment, opened), netnsPath, { allowOwn: true });
  return isHere ? { ...attachment, netnsPath, cached: { ...cached, netnsPath } } : undefined;
}

/** The links on the host that the cached result names. */
export function answeredEnds({ cached, ifName }: KnownAttachment): HostEnd[] {
  const { interfaces = [] } = (cached && resultIn(cached)) ?? {};
  const farMac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox)?.mac ?? "";
  return interfaces.filter(({ sandbox }) => !sandbox).map(({ name, mac = "" }) => ({ name, mac, farMac }));
}

/** What a table of attachments shows. Without `parts`, when the namespace is gone, it is what was once made. */
export function gistOf({ ledgers, cached }: KnownAttachment, parts?: readonly KnownPart[]): Gist {
  const resources = parts?.flatMap((part) => part.resources) ??
    ledgers.flatMap(({ adds }) => adds.at(-1)!.entries.map(({ kind, spec }) => ({ kind: loadKind(kind), spec })));
  const gists = resources.map(({ kind, spec }) => kind?.gist?.(spec));
  const result = resources.length > 0 ? undefined : cached && resultIn(cached);
  return {
    addresses: result?.ips?.map(({ address }) => address) ?? gists.flatMap((gist) => gist?.addresses ?? []),
    ports: gists.flatMap((gist) => gist?.ports ?? []),
  };
}

/** What the runtime's cache has. */
export function resultIn({ plugins }: CachedAttachment): Result | undefined {
  const first = plugins[0];
  try {
    return first && parsePrevResult({ ...first.document, cniVersion: configVersion(first.document) });
  } catch {
    return undefined;
  }
}

/** The part of a foreign plugin has no resources. */
function restatedPart(
  { plugins: _, ...owner }: CachedAttachment,
  type: string,
  checked: () => ReturnType<typeof checkable>,
  madeBy: "others" | "unreadable",
  path: string,
  hostIn: (invocation: Invocation) => Host,
): KnownPart {
  // Without plugin directories, nobody knows whose program had a name with a prefix.
  const isKnown = path !== "" || pluginNamed(type) === type || madeBy === "unreadable";
  const plugin = isKnown ? knownPlugin(type, path) : undefined;
  const unread: Invocation = { ...owner, command: "CHECK", path, stdin: "" };
  const part: KnownPart = { plugin: type, madeBy, host: hostIn(unread), resources: [] };
  if (plugin === undefined || plugin.del !== undefined) return part;
  try {
    const invocation = { ...unread, ...checked() };
    const conf = plugin.validate(invocation.document), prevResult = prevResultOf(conf), host = hostIn(invocation);
    judge(plugin, conf, invocation, prevResult);
    const list = restate({ plugin: type, conf, invocation, prevResult, host }, "check", (at) => plugin.add(at));
    const resources: KnownResource[] = [];
    for (const { kind, spec } of list) resources.push({ name: kind.kind, kind, spec, isRestated: true });
    return { ...part, madeBy: list.length === 0 ? "nobody" : part.madeBy, host, resources };
  } catch (error) {
    const name = `what ${type} made cannot be told: ${errorText(error)}`;
    return { ...part, resources: [{ name, kind: undefined, spec: undefined }] };
  }
}

/** The document in a version that has CHECK, because IPAM plugins are called too. */
function checkable(
  document: Record<string, unknown>,
  ifName: string,
  opened: Opened,
): { stdin: string; document: ParsedObject } {
  const cniVersion = "1.0.0", version = configVersion(document);
  const result = parsePrevResult({ ...document, cniVersion: version });
  if (result === undefined) return asWritten({ ...document, cniVersion });
  const links = result.interfaces ?? linksThere(ifName, opened);
  const newest = { family: "1.0", result: { ...result, interfaces: links, cniVersion: CURRENT_VERSION } } as const;
  return asWritten({
    ...document,
    cniVersion,
    prevResult: resultDocument(convertResult(newest, cniVersion)),
  });
}

/** Results before 0.3.0 name no links, so it is those that the container has: in the order of results. */
function linksThere(ifName: string, { route, container }: Opened): Interface[] | undefined {
  const inside = container && getLink(container.route, ifName);
  if (inside === undefined) return undefined;
  const onHost = listLinks(route),
    end = onHost.find(({ index, link }) => index === inside.link && link === inside.index);
  const links = end === undefined ? [] : [...onHost.filter(({ index }) => index === end.master), end];
  const outside = links.map(({ name, mac }) => ({ name, mac }));
  return [...outside, { name: ifName, mac: inside.mac, sandbox: container!.netnsPath }];
}

function resourcesOf({ entries }: LedgerAdd): KnownResource[] {
  return entries.map(({ kind, spec }) => ({ name: kind, kind: loadKind(kind), spec }));
}

/**
 * A call of CHECK for delegates. It needs a version that has the verb, and a result: the ledger records its links and
 * addresses, and the gateways. `path` is CNI_PATH.
 */
export function recordedInvocation(
  { header: { stdin, ...header }, entries, answer }: LedgerAdd,
  path: string,
): Invocation {
  const cniVersion = "1.0.0";
  const { links = [], mac, addresses = [] } = answer ?? {};
  const inside = { name: header.ifName, mac, sandbox: header.netnsPath };
  const given: IpConfig[] = entries.flatMap(({ kind, spec }) => loadKind(kind)?.addressesIn?.(spec) ?? []);
  const ips: IpConfig[] = given.length > 0
    ? given.map(({ address, gateway }) => ({ address, gateway }))
    : addresses.map((address) => ({ address }));
  const prevResult = { cniVersion, interfaces: [...links.map((name) => ({ name })), inside], ips };
  return { ...header, command: "CHECK", path, ...asWritten({ ...JSON.parse(stdin), cniVersion, prevResult }) };
}
