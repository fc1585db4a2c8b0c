/** The end of a network: everything that its attachments have left on the host, because they shared it. */
import { CniError, INTERNAL } from "../cni/error.ts";
import { collectFailures, throwJoined } from "../contract/failures.ts";
import { counted } from "../contract/counted.ts";
import type { Retired } from "../contract/resource.ts";
import { isNamespaceGone } from "../engine/operator/inspect.ts";
import { collectOutside, networkUpon, removeSharedParts, sweepNetwork } from "../engine/operator/retire.ts";
import { onHost } from "../engine/on-host.ts";
import type { Opened } from "../engine/open-host.ts";
import { openSession } from "../engine/run.ts";
import type { ConfiguredPlugin } from "../engine/plugin-parts.ts";
import { HostView } from "../engine/ledger/whereabouts.ts";
import { loadPlugin } from "../plugins/table.ts";
import type { Network } from "./conf/network.ts";
import { deleteGone } from "./gc.ts";
import { withAllLocked } from "./lock.ts";
import { checkNames, type Runtime } from "./plugin-call.ts";
import { pluginConfig } from "./plugin-config.ts";
import { attachmentsToNetwork, knownAttachments, type RecordedAttachment } from "./records.ts";

export interface RemovalOptions {
  readonly isDryRun: boolean;
  /** Leases that no record explains are removed, too. */
  readonly withLeases: boolean;
}

/** What is removed, or would be. */
export interface Removal {
  /** Their namespaces are gone. */
  readonly attachments: readonly RecordedAttachment[];
  readonly retired: readonly Retired[];
  /** Neither a file nor a record says how the network was configured. */
  readonly isUnconfigured: boolean;
  /** What plugins could not remove of what no record names. */
  readonly failures: readonly unknown[];
}

/** Throws while something is attached, and changes nothing then. */
export function removeNetwork(runtime: Runtime, network: Network, options: RemovalOptions): Removal {
  checkNames(network, undefined);
  return withAllLocked(runtime, () => {
    const { isDryRun } = options, attachments = attachmentsToNetwork(runtime, network.name), view = new HostView();
    requireUnused(
      network,
      attachments.filter(({ recorded }) => !isNamespaceGone(recorded, view)),
      "in use",
      "nothing is removed",
    );
    const plugins = configuredPlugins(network, attachments), isUnconfigured = plugins.length === 0;
    const foreseen = onHost((host) => removeOrForesee(runtime, network, plugins, host));
    const leases = foreseen.filter(({ lease }) => lease !== undefined);
    if (!options.withLeases) requireExplained(network, leases, attachments);
    if (isDryRun) return { attachments, retired: foreseen, isUnconfigured, failures: [] };
    throwJoined(collectFailures(attachments, (attachment) => deleteGone(runtime, network, attachment)), "\n");
    const requireStillUnused = () => {
      const since = attachmentsToNetwork(runtime, network.name), count = countOf(attachments);
      const consequence = attachments.length === 0
        ? "nothing is removed"
        : `what ${count} had left is removed, the rest stays`;
      requireUnused(network, since, "in use again", consequence);
    };
    requireStillUnused();
    const { name, disableGC } = network, { pluginPath } = runtime;
    const failures = disableGC
      ? []
      : onHost((host) => collectOutside(name, plugins, pluginPath, openSession().hostOf(host)));
    // Engines do not take our lock. An ADD that uses a bridge has its ledger before it shares the host.
    return onHost((host) => {
      // Until then others may use what containers share, such as bridges.
      host.waitUntilAlone();
      requireStillUnused();
      if (!disableGC) failures.push(...sweepNetwork(name, plugins, pluginPath, openSession().hostOf(host)));
      const others = removeOrForesee(runtime, network, plugins, host, leases).filter(({ lease }) =>
        lease === undefined
      );
      return { attachments, retired: [...leases, ...others], isUnconfigured, failures };
    });
  });
}

/** Whether anything of it is left on the host, or recorded. */
export function hasTraces(runtime: Runtime, network: Network): boolean {
  checkNames(network, undefined);
  const attachments = attachmentsToNetwork(runtime, network.name);
  return attachments.length > 0 ||
    onHost((host) => removeOrForesee(runtime, network, configuredPlugins(network, []), host)).length > 0;
}

/** Without the leases that may be released, nothing is changed. */
function removeOrForesee(
  runtime: Runtime,
  { name, cniVersion }: Network,
  plugins: readonly ConfiguredPlugin[],
  host: Opened,
  leases?: readonly Retired[],
): Retired[] {
  const mayRelease = (lease: string) => leases?.some(({ what }) => what === lease) ?? false;
  // Without a configuration, leases can be where these keep them by default.
  const unconfigured = ["host-local", "patchbay-cluster"].map((type) => ({
    type,
    document: { cniVersion, name, type, ipam: { type } },
  }));
  const configured = plugins.length > 0 ? plugins : unconfigured;
  const others = knownAttachments(runtime).filter(({ network }) => network !== name);
  const upon = (link: string) => networkUpon(link, others), isDryRun = leases === undefined;
  const how = { network: name, isDryRun, mayRelease, networkUpon: upon };
  return removeSharedParts(configured, how, runtime.pluginPath, openSession().hostOf(host));
}

/** Ledgers have what their plugins were given, also when no file configures the network any more. */
function configuredPlugins(network: Network, attachments: readonly RecordedAttachment[]): ConfiguredPlugin[] {
  if (network.plugins.length > 0) {
    return network.plugins.map((plugin) => ({ type: plugin.type, document: pluginConfig(network, plugin, {}) }));
  }
  const ledgers = attachments.flatMap(({ recorded }) => recorded.ledgers).map(({ header }) => header);
  const newest = new Map(ledgers.map(({ plugin, stdin }) => [plugin, stdin]));
  return [...newest].filter(([type]) => loadPlugin(type) !== undefined)
    .map(([type, stdin]) => ({ type, document: JSON.parse(stdin) }));
}

function requireUnused(
  { name }: Network,
  attached: readonly RecordedAttachment[],
  state: string,
  consequence: string,
): void {
  if (attached.length === 0) return;
  const names = attached.map(({ ifName, containerId }) => `${ifName} of container ${containerId}`);
  const text = `network ${name} is ${state} by ${countOf(attached)}: ${someOf(names)}; ${consequence}`;
  const nextStep = `'patchbay del ${name} CONTAINER' ends an attachment, 'patchbay gc ${name} --all' every one`;
  throw new CniError(INTERNAL, text, "", { nextStep });
}

/** A lease of a container that has gone is explained by its record. */
function requireExplained(
  { name }: Network,
  leases: readonly Retired[],
  attachments: readonly RecordedAttachment[],
): void {
  const unexplained = leases.filter(({ lease }) =>
    attachments.every(({ containerId }) => containerId !== lease!.containerId)
  );
  if (unexplained.length === 0) return;
  const count = `${counted(unexplained.length, "lease")} that no record explains`;
  const list = someOf(unexplained.map(({ what }) => what));
  throw new Error(`network ${name} has ${count}: ${list}; nothing is removed without --leases`);
}

function countOf(attachments: readonly RecordedAttachment[]): string {
  return counted(attachments.length, "attachment");
}

const MOST_NAMES = 5;

function someOf(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return more <= 1 ? names.join(", ") : `${names.slice(0, MOST_NAMES).join(", ")} and ${more} more`;
}
