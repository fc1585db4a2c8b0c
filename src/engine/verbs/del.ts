/**
 * DEL (CNI spec 1.1.0, "DEL: Remove container from network, or un-apply modifications").
 *
 * The ledger records what ADD made, so DEL needs neither the namespace, nor prevResult, nor a valid configuration. When
 * prevResult does not belong to an ADD in the ledger, another program may have made the attachment since. Then DEL also
 * restates the list from the configuration and prevResult, and removes that. If one removal fails, DEL still tries the
 * others; then it fails, and the ledger stays for the next DEL.
 */
import { CniError, errorText } from "../../cni/error.ts";
import type { Invocation } from "../../cni/invocation.ts";
import { meansPlugin } from "../../cni/plugin-name.ts";
import { field } from "../../cni/json.ts";
import type { Result } from "../../cni/result.ts";
import { parsePrevResult } from "../../cni/result-versions.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { loadKind } from "../../resources/table.ts";
import { configVersion } from "../../cni/versions.ts";
import { confirmedAdd, hasLinkOf, isPlainlyConfirmed } from "../ledger/confirmation.ts";
import type { CallHost } from "../call-host.ts";
import { isOtherNamespace } from "../open-host.ts";
import { attempt, throwJoined } from "../../contract/failures.ts";
import type { Host } from "../../contract/host.ts";
import { readLedger, removeLedger, removeLostLedger, removing } from "../ledger/ledger.ts";
import { unknownKind } from "../ledger/newer.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { isAnotherContainers, ledgersOfSameInterface } from "../ledger/claims.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";
import type { Resource } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { restate } from "../restating.ts";
import type { Session } from "../session.ts";
import { ownerOf, type VerbCall } from "../verb-call.ts";
import { traced } from "../../contract/trace.ts";
import { lenientConf } from "../lenient-conf.ts";
import { passOnIfLeft, refuseIfLeft } from "../../process/calls.ts";
import { warn } from "../../process/warn.ts";

type AnyResource = Resource<unknown>;
type Del = NonNullable<PluginDefinition<PluginConfig>["del"]>;

/** A resource, and the host for its removal: without the container when DEL must not touch its namespace. */
interface Thing extends AnyResource {
  host: Host;
  /** The call whose configuration a delegate gets. */
  call: Invocation;
  isRestated: boolean;
}

export function runDel(call: VerbCall): undefined {
  const { plugin, invocation, document, session } = call;
  if (plugin.keepsNothing) return;
  const owner = ownerOf(call), own = readLedger(owner, plugin.name);
  if (plugin.del === undefined && belongsToOthers(own, plugin.name, session)) return;
  const isComplete = own !== undefined && !own.damaged && isPlainlyConfirmed(own, field(document, "prevResult"));
  const prevResult = isComplete || plugin.del !== undefined ? undefined : prevResultIfReadable(document);
  const record = own ?? recordUnderAnotherName(owner, plugin.name, prevResult);
  withDelHost(session, invocation, record !== undefined, (host) =>
    removing(record, () => {
      const failures = plugin.del === undefined
        ? removeAttachment(call, { owner, record, prevResult }, isComplete || isConfirmed(record, prevResult), host)
        : removeByPlugin(call, plugin.del, host);
      throwJoined(failures);
      refuseIfLeft();
      if (record === undefined) removeLostLedger(owner, plugin.name);
      else removeLedger(record.header, plugin.name);
    }, own && session.options.gone));
}

/** True when this DEL takes back an ADD that failed, and what exists was made by another ADD or another program. */
function belongsToOthers(
  own: LedgerRecord | undefined,
  plugin: string,
  { options: { takesBack } }: Session,
): boolean {
  if (takesBack === undefined) return false;
  if (own === undefined) return true;
  const hasFailed = takesBack.failed !== undefined && meansPlugin(takesBack.failed, plugin);
  return hasFailed && own.adds.every(({ answer }) => answer !== undefined);
}

/** For a network that was renamed after ADD: prevResult belongs to an ADD in another network's ledger. */
function recordUnderAnotherName(
  owner: Owner,
  plugin: string,
  prevResult: Result | undefined,
): LedgerRecord | undefined {
  if (prevResult === undefined) return undefined;
  return ledgersOfSameInterface(owner).find((rival) =>
    rival.header.plugin === plugin && confirmedAdd(rival, prevResult)
  );
}

function isConfirmed(record: LedgerRecord | undefined, prevResult: Result | undefined): boolean {
  if (record === undefined || record.damaged || prevResult === undefined) return false;
  return confirmedAdd(record, prevResult) !== undefined;
}

/** What tells of an attachment: its ledger, if there is one, and the call. */
interface Evidence {
  owner: Owner;
  record: LedgerRecord | undefined;
  prevResult: Result | undefined;
}

/** `isComplete`: the ledger records everything that exists. */
function removeAttachment(call: VerbCall, evidence: Evidence, isComplete: boolean, host: CallHost): unknown[] {
  const { record } = evidence, failures: unknown[] = [];
  const recorded = record === undefined ? [] : thingsOf(record, call.invocation, host, failures);
  let restated: Thing[] = [];
  if (!isComplete) {
    try {
      restated = restatedThings(call, evidence, host);
    } catch (error) {
      passOnIfLeft(error);
      if (record === undefined || record.damaged) failures.push(error);
      else warn(`DEL uses the ledger only: ${errorText(error)}`);
    }
  }
  removeBoth(recorded, restated, failures);
  return failures;
}

/**
 * Removes the ledger's resources first, because the ledger knows the form they were made in. When that fails, the
 * restated list is left to the next DEL. Leases that come first in their list are released last, when nothing uses
 * their addresses any more: not while the container's link is there.
 */
function removeBoth(allRecorded: Thing[], allRestated: Thing[], failures: unknown[]): void {
  const recorded = withoutSameCalls(allRecorded, []), restated = withoutSameCalls(allRestated, recorded);
  const isLease = (thing: Thing, index: number) => index === 0 && thing.kind.isLease === true;
  const others = (things: Thing[]) => things.filter((thing, index) => !isLease(thing, index));
  const before = failures.length;
  let isLinkGone = removeAll(others(recorded), failures);
  if (failures.length === before) isLinkGone = removeAll(others(restated), failures);
  if (isLinkGone) removeAll([...restated.filter(isLease), ...recorded.filter(isLease)], failures);
}

/** A foreign plugin may refuse the second of two equal DELs, and then no later DEL of ours would succeed. */
function withoutSameCalls(things: Thing[], others: readonly Thing[]): Thing[] {
  const kept: Thing[] = [];
  for (const thing of things) {
    const isSame = (other: Thing) => isSameDelegation(thing, other);
    if (!thing.kind.isDelegated || !(others.some(isSame) || kept.some(isSame))) kept.push(thing);
  }
  return kept;
}

function isSameDelegation(one: Thing, other: Thing): boolean {
  return one.kind.kind === other.kind.kind && Bun.deepEquals(one.spec, other.spec) &&
    one.call.cniArgs === other.call.cniArgs &&
    Bun.deepEquals(configurationOf(one.call), configurationOf(other.call));
}

/** What the call of ADD and the call of DEL have in common. */
function configurationOf({ document, stdin }: Invocation): Record<string, unknown> {
  const { prevResult: _, ...configuration } = document ?? JSON.parse(stdin);
  return configuration;
}

/** For plugins with their own record. */
function removeByPlugin({ plugin, invocation, document }: VerbCall, del: Del, host: Host): unknown[] {
  const conf = lenientConf(plugin, document), failures: unknown[] = [];
  const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResultIfReadable(document), host };
  restate(call, "undo", (at): Result => {
    attempt(failures, () => del(at));
    return { cniVersion: conf.cniVersion };
  });
  return failures;
}

/**
 * Rejects a path that leads to our own namespace, as the reference plugins do. But when a ledger shows that we made the
 * attachment, the container's namespace is gone and its path leads to another one now: then DEL removes what is on the
 * host.
 */
export function withDelHost(
  session: Session,
  invocation: Invocation,
  isRecorded: boolean,
  work: (host: CallHost) => void,
): void {
  const withoutNetns = isRecorded ? { ...invocation, netnsPath: "" } : undefined;
  const isMistaken = (error: unknown) => error instanceof CniError && error.code === 8;
  let begun = false;
  try {
    session.withHost(invocation, true, (host) => {
      begun = true;
      work(host);
    });
  } catch (error) {
    if (begun || withoutNetns === undefined || !isMistaken(error)) throw error;
    warn(`CNI_NETNS "${invocation.netnsPath}" is the host's own namespace now; removing what is left on the host`);
    session.withHost(withoutNetns, true, work);
  }
}

/** Removes the ledger's resources in reverse. GC calls it for invalid attachments. */
export function removeRecorded(record: LedgerRecord, invocation: Invocation, host: CallHost): unknown[] {
  const failures: unknown[] = [];
  removeAll(thingsOf(record, invocation, host, failures), failures);
  return failures;
}

function thingsOf(record: LedgerRecord, invocation: Invocation, host: CallHost, failures: unknown[]): Thing[] {
  const things: Thing[] = [];
  for (const add of record.adds) {
    const { stdin, cniArgs, netns } = add.header;
    const call = { ...invocation, stdin, cniArgs, document: undefined }, original = host.inCall(call);
    // The path may belong to another container now, with links of the same names.
    const seen = isOtherNamespace(host, netns) ? original.withoutContainer() : original;
    for (const { kind, spec } of add.entries) {
      const known = loadKind(kind);
      if (known !== undefined) things.push({ kind: known, spec, host: seen, call, isRestated: false });
      else failures.push(unknownKind(record.path, kind));
    }
  }
  return things;
}

function restatedThings({ plugin, invocation, document }: VerbCall, evidence: Evidence, host: CallHost): Thing[] {
  const { owner, prevResult } = evidence, conf = lenientConf(plugin, document);
  const seen = isContainers(evidence, host) ? host : host.withoutContainer();
  const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResult, host: seen };
  const restated = restate(call, "undo", (at) => plugin.add(at));
  return withoutLinksOfRivals(restated, owner, seen)
    .map((one) => ({ ...one, host: seen, call: invocation, isRestated: true }));
}

/** Whether the namespace at CNI_NETNS still belongs to the container, and not to another one under the same path. */
function isContainers({ owner, record, prevResult }: Evidence, host: CallHost): boolean {
  const { container } = host;
  if (container === undefined || (prevResult !== undefined && hasLinkOf(prevResult, owner.ifName, host))) return true;
  if (record !== undefined) return !isOtherNamespace(host, record.header.netns);
  const { cookie, route } = container;
  const mayBeTaken = cookie !== undefined && linkIndex(route, owner.ifName) !== undefined;
  return !mayBeTaken || !isAnotherContainers(owner, cookie);
}

/**
 * Omits the container's link, and what is identified by its name, when another network's ledger contains it: runtimes
 * also call DEL after an ADD that failed because the interface already existed.
 */
function withoutLinksOfRivals(resources: AnyResource[], owner: Owner, host: CallHost): AnyResource[] {
  if (!resources.some(({ kind }) => kind.isContainerLink)) return resources;
  const rival = ledgersOfSameInterface(owner).find(({ header, entries }) =>
    // A container whose namespace is gone had its link there.
    !isOtherNamespace(host, header.netns) && entries.some(({ kind }) => loadKind(kind)?.isContainerLink)
  );
  if (rival === undefined) return resources;
  warn(`${owner.ifName} of container ${owner.containerId} stays: it belongs to network "${rival.header.network}"`);
  return resources.filter(({ kind }) => !kind.isContainerLink && !kind.isOfInterface);
}

/** DEL ignores a malformed prevResult and removes what it finds without it. */
function prevResultIfReadable(document: Record<string, unknown>): Result | undefined {
  try {
    return parsePrevResult({ cniVersion: configVersion(document), prevResult: field(document, "prevResult") });
  } catch (error) {
    warn(`DEL ignores prevResult: ${errorText(error)}`);
    return undefined;
  }
}

/** Returns false when a link in the container could not be removed. Then its addresses stay taken, too. */
function removeAll(things: Thing[], failures: unknown[]): boolean {
  let isLinkGone = true;
  for (const { kind, spec, host, isRestated } of things.toReversed()) {
    if (!isLinkGone && kind.isLease) continue;
    const before = failures.length;
    attempt(failures, () => {
      try {
        traced("remove", kind, spec, () => kind.remove(spec, host, isRestated));
      } catch (error) {
        if (isRestated || !isDamage(error)) throw error;
        // Otherwise no later DEL would succeed, either.
        warn(
          `what the ledger says of ${kind.kind} cannot be understood, and nothing is removed by it: ${
            errorText(error)
          }`,
        );
      }
    });
    if (kind.isContainerLink && failures.length > before) isLinkGone = false;
  }
  return isLinkGone;
}

/** What JavaScript throws for values that are missing, or of another form than every ADD writes. */
function isDamage(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}
