/** The end of a network: everything that its attachments have left on the host, because they shared it. */
import type { Retired } from "../contract/resource.ts";
import { type ConfiguredPlugin, retireNetwork } from "../engine/operator/retire.ts";
import type { Network } from "./conf/network.ts";
import { collectUnlocked, isGone } from "./gc.ts";
import { withAllLocked } from "./lock.ts";
import type { Runtime } from "./plugin-call.ts";
import { pluginConfig } from "./plugin-config.ts";
import { attachmentsTo, type RecordedAttachment } from "./recorded-attachments.ts";

export interface RemovalOptions {
  readonly isDryRun: boolean;
  /** Also the leases that no record explains. */
  readonly withLeases: boolean;
}

/** What is removed, or would be. */
export interface Removal {
  /** Their namespaces are gone. */
  readonly attachments: readonly RecordedAttachment[];
  readonly retired: readonly Retired[];
}

/** Throws while something is attached, and changes nothing then. */
export function removeNetwork(runtime: Runtime, network: Network, options: RemovalOptions): Removal {
  const { isDryRun, withLeases } = options, { name } = network;
  return withAllLocked(runtime.cacheDirectory, () => {
    const attachments = attachmentsTo(runtime, name), attached = attachments.filter((one) => !isGone(one));
    if (attached.length > 0) {
      const names = attached.map(({ ifName, containerId }) => `${ifName} of container ${containerId}`);
      throw new Error(`network ${name} is in use: ${names.join(", ")}; nothing is removed`);
    }
    const plugins = configuredPlugins(network), foreseen = retireNetwork(name, plugins, true);
    const isExplained = (containerId?: string) => attachments.some((one) => one.containerId === containerId);
    const leases = foreseen.filter(({ lease }) => lease !== undefined && !isExplained(lease.containerId));
    if (leases.length > 0 && !withLeases) {
      const names = leases.map(({ what }) => what).join(", ");
      throw new Error(`network ${name} has ${names}, which no record explains; nothing is removed without --leases`);
    }
    if (isDryRun) return { attachments, retired: foreseen };
    // What no record names goes with it, such as chains.
    collectUnlocked(runtime, network, { valid: [] }, () => {});
    // GC has given back the leases.
    const others = retireNetwork(name, plugins, false).filter(({ lease }) => lease === undefined);
    return { attachments, retired: [...foreseen.filter(({ lease }) => lease !== undefined), ...others] };
  });
}

/** Whether anything of it is left on the host, or recorded. */
export function hasTraces(runtime: Runtime, network: Network): boolean {
  return attachmentsTo(runtime, network.name).length > 0 ||
    retireNetwork(network.name, configuredPlugins(network), true).length > 0;
}

/** Without a configuration, leases can be where host-local keeps them by default. */
function configuredPlugins(network: Network): ConfiguredPlugin[] {
  const { name, cniVersion, plugins } = network, type = "host-local";
  if (plugins.length === 0) return [{ type, document: { cniVersion, name, type, ipam: { type } } }];
  return plugins.map((plugin) => ({ type: plugin.type, document: pluginConfig(network, plugin, {}) }));
}
