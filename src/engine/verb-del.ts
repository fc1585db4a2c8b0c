/**
 * DEL (CNI spec 1.1.0, "DEL: Remove container from network, or un-apply modifications").
 *
 * The ledger says what was made, so neither the namespace, nor prevResult, nor a valid configuration is needed. Without
 * one (the attachment was made by other plugins, or /run was emptied) the list is restated from the configuration and
 * prevResult. Every removal is tried whatever happened to the one before; DEL fails when one of them failed, and the
 * ledger then stays for the next try.
 */
import { CniError, errorText, INTERNAL } from "../cni/error.ts";
import { field } from "../cni/json.ts";
import type { Result } from "../cni/result.ts";
import { parsePrevResult } from "../cni/result-versions.ts";
import { loadKind } from "../resources/table.ts";
import { restate } from "./attachment.ts";
import { delegatingKind } from "./delegation.ts";
import { type Host, isAnothers } from "./host.ts";
import { type LedgerRecord, listRivals, readLedger, removeLedger, removing } from "./ledger.ts";
import type { Owner, Resource } from "./resource.ts";
import { type Invocation, type VerbCall, withHost } from "./run.ts";
import { traced } from "./trace.ts";
import { usableConf } from "./usable-conf.ts";
import { warn } from "../ffi/warn.ts";

// deno-lint-ignore no-explicit-any
type AnyResource = Resource<any>;

export function runDel(call: VerbCall): undefined {
  const { plugin, invocation, document } = call;
  if (plugin.keepsNothing) return;
  const owner: Owner = {
    network: String(field(document, "name")),
    containerId: invocation.containerId,
    ifName: invocation.ifName,
  };
  const record = readLedger(owner, plugin.name);
  withDelHost(invocation, record !== undefined, (host) =>
    removing(record, () => {
      const failures = record === undefined ? [] : removeRecorded(record, invocation, host);
      if (record === undefined || record.damaged) {
        failures.push(...removeRestated(call, asSeenBy(record?.header.netns, host)));
      }
      if (failures.length > 0) throw joined(failures);
      removeLedger(owner, plugin.name);
    }));
}

/**
 * A path that names our own namespace is a mistake, refused as upstream does. But where the ledger shows that we made
 * the attachment, the container's namespace is gone and its path was given to somebody else: its links are gone with
 * it, and the rest must go now.
 */
export function withDelHost(invocation: Invocation, known: boolean, work: (host: Host) => void): void {
  const lost = known ? { ...invocation, netnsPath: "" } : undefined;
  const isMistaken = (error: unknown) => error instanceof CniError && error.code === 8;
  let begun = false;
  try {
    withHost(invocation, true, (host) => {
      begun = true;
      work(host);
    });
  } catch (error) {
    if (begun || lost === undefined || !isMistaken(error)) throw error;
    warn(`CNI_NETNS "${invocation.netnsPath}" is the host's own namespace now; removing what is left on the host`);
    withHost(lost, true, work);
  }
}

/** The path that was the container's may be another one's by now, with links of the same names. */
function asSeenBy(netns: string | undefined, host: Host): Host {
  return isAnothers(host, netns) ? Object.create(host, { container: { value: undefined } }) : host;
}

/** Removes what the ledger holds, the last first. Also used by GC, for attachments nobody names any more. */
export function removeRecorded(record: LedgerRecord, invocation: Invocation, host: Host): unknown[] {
  const { stdin, cniArgs } = record.header;
  const original = { ...invocation, stdin, cniArgs, document: undefined };
  const failures: unknown[] = [];
  for (const { kind, spec, netns } of record.entries.toReversed()) {
    const known = delegatingKind(kind, original) ?? loadKind(kind);
    if (known !== undefined) failures.push(...removeAll([{ kind: known, spec }], asSeenBy(netns, host)));
    // Left by a newer version of this program, which can still remove it.
    else failures.push(new CniError(INTERNAL, `ledger ${record.path} holds a resource of unknown kind "${kind}"`));
  }
  return failures;
}

function removeRestated({ plugin, invocation, document }: VerbCall, host: Host): unknown[] {
  const conf = usableConf(plugin, document);
  const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResultIfReadable(conf), host };
  if (plugin.del === undefined) {
    const restated = restate(call, (at) => plugin.add(at), { removing: true });
    return removeAll(withoutLinksOfRivals(restated, { network: conf.name, ...invocation }), host);
  }
  const failures: unknown[] = [];
  restate(call, (at): Result => {
    try {
      plugin.del!(at);
    } catch (error) {
      failures.push(error);
    }
    return { cniVersion: conf.cniVersion };
  }, { removing: true });
  return failures;
}

/**
 * After an ADD that failed because another network has the container's interface already, runtimes call DEL: without a
 * ledger, and the link, and what goes by its name, is the other network's.
 */
function withoutLinksOfRivals(resources: AnyResource[], owner: Owner): AnyResource[] {
  if (!resources.some(({ kind }) => kind.isContainerLink)) return resources;
  const rival = listRivals(owner).find(({ entries }) => entries.some(({ kind }) => loadKind(kind)?.isContainerLink));
  if (rival === undefined) return resources;
  warn(`${owner.ifName} of container ${owner.containerId} stays: it belongs to network "${rival.header.network}"`);
  return resources.filter(({ kind }) => !kind.isContainerLink && !kind.isOfInterface);
}

/** A result that cannot be read must not keep DEL from removing what can be found without it. */
function prevResultIfReadable(conf: { prevResult?: unknown; cniVersion: string }): Result | undefined {
  try {
    return parsePrevResult(conf);
  } catch (error) {
    warn(`DEL goes on without prevResult: ${errorText(error)}`);
    return undefined;
  }
}

function removeAll(resources: AnyResource[], host: Host): unknown[] {
  const failures: unknown[] = [];
  for (const { kind, spec } of resources.reverse()) {
    try {
      traced("remove", kind, spec, () => kind.remove(spec, host));
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

/** One failure is reported as it is; of several, the first gives the code and all give the message. */
export function joined(failures: unknown[]): unknown {
  if (failures.length === 1) return failures[0];
  const code = failures.find((failure) => failure instanceof CniError)?.code ?? INTERNAL;
  return new CniError(code, failures.map(errorText).join("; "), "", { cause: failures[0] });
}
