/** What a network leaves on the host when nothing is attached to it any more: `patchbay network remove`. */
import { type Invocation, NO_CALL } from "../../cni/invocation.ts";
import { asWritten, field } from "../../cni/json.ts";
import { VALID_ATTACHMENTS } from "../../cni/valid-attachments.ts";
import { collectFailures } from "../../contract/failures.ts";
import type { Host } from "../../contract/host.ts";
import type { Resource, Retired, Retirement } from "../../contract/resource.ts";
import { kindNames, loadKind } from "../../resources/table.ts";
import { findPlugin, knownPlugin } from "../delegation/find-plugin.ts";
import { listLedgersOfContainer } from "../ledger/ledger.ts";
import { type ConfiguredPlugin, type PluginPart, pluginParts } from "../plugin-parts.ts";
import { hostSideOf } from "../ledger/whereabouts.ts";
import type { KnownAttachment } from "./known-attachment.ts";
import { restate } from "../restating.ts";
import { openSession } from "../run.ts";

/** For Retirement.networkUpon. The configuration tells it of other programs' plugins. */
export function networkUpon(link: string, attachments: readonly KnownAttachment[]): string | undefined {
  return attachments.find(({ ledgers, cached }) =>
    ledgers.some(({ adds }) =>
      adds.some(({ entries }) => entries.some((entry) => hostSideOf(entry).master === link))
    ) ||
    cached?.plugins.some(({ document }) =>
      field(document, "master") === link && field(document, "linkInContainer") !== true
    )
  )?.network;
}

export function removeSharedParts(
  plugins: readonly ConfiguredPlugin[],
  how: Omit<Retirement, "before">,
  path: string,
  host: Host,
): Retired[] {
  const parts = knownParts(plugins, path),
    list = parts.flatMap((part) => resourcesOf(part, host));
  const retired: Retired[] = [];
  for (const name of kindNames) {
    const kind = loadKind(name)!, specs = list.filter((one) => one.kind === kind).map(({ spec }) => spec);
    retired.push(...kind.retire?.({ ...how, before: retired }, specs, host) ?? []);
  }
  for (const { plugin, conf } of parts) {
    if (conf !== undefined) retired.push(...plugin?.retire?.(conf, { ...how, before: retired }) ?? []);
  }
  return retired;
}

/**
 * GC of other programs and of what our plugins keep outside of the kernel, for a network without attachments. It may take
 * as long as they like, so nobody may have to wait for it. Returns what failed.
 */
export function collectOutside(
  network: string,
  plugins: readonly ConfiguredPlugin[],
  path: string,
  host: Host,
): unknown[] {
  return collectFailures(knownParts(plugins, path), (part) => {
    if (isForeign(part, path)) return collectForeign(part, path);
    const { plugin, conf } = part;
    // Leases are listed for the operator first (`retire`).
    if (conf !== undefined && plugin?.retire === undefined) plugin?.gc?.(conf, hasLedgerIn(network), host);
  });
}

/** Removes from the kernel what no ledger names, as GC does, for a network without attachments. Returns what failed. */
export function sweepNetwork(
  network: string,
  plugins: readonly ConfiguredPlugin[],
  path: string,
  host: Host,
): unknown[] {
  return collectFailures(knownParts(plugins, path), (part) => {
    const { plugin } = part;
    if (plugin?.sweeps === undefined || isForeign(part, path)) return;
    for (const kind of plugin.sweeps) loadKind(kind)!.sweep!(network, hasLedgerIn(network), host);
  });
}

/** An attachment that has a ledger by now has been begun since: what is found of it stays. */
function hasLedgerIn(network: string) {
  return ({ containerId, ifName }: { containerId: string; ifName?: string }) =>
    listLedgersOfContainer(containerId).some(({ header }) =>
      header.network === network && (ifName === undefined || header.ifName === ifName)
    );
}

function isForeign({ type, plugin }: PluginPart, path: string): boolean {
  try {
    return !("own" in findPlugin(type, path));
  } catch (error) {
    if (plugin === undefined) throw error;
    return false;
  }
}

/** Does nothing for a network that is older than the verb. */
function collectForeign({ type, document }: PluginPart, path: string): void {
  const call: Invocation = {
    ...NO_CALL,
    command: "GC",
    path,
    ...asWritten({ ...document, [VALID_ATTACHMENTS]: [] }),
  };
  openSession({ inEveryVersion: true }).delegate(type, call);
}

/** What a plugin calls of which nothing is known, it cleans up itself. */
function knownParts(plugins: readonly ConfiguredPlugin[], path: string): PluginPart[] {
  return plugins.flatMap((plugin) => {
    const parts = pluginParts(plugin, (type) => knownPlugin(type, path));
    const unknown = parts.findIndex(({ conf }) => conf === undefined);
    return unknown < 0 ? parts : parts.slice(0, unknown + 1);
  });
}

/** Without names and addresses, which only an attachment has. */
function resourcesOf({ plugin, conf, document }: PluginPart, host: Host): Resource<unknown>[] {
  if (plugin === undefined || conf === undefined || plugin.del !== undefined) return [];
  try {
    const invocation = { ...NO_CALL, ...asWritten(document) };
    return restate(
      { plugin: plugin.name, conf, invocation, prevResult: () => undefined, host },
      "undo",
      (at) => plugin.add(at),
    );
  } catch {
    return [];
  }
}
