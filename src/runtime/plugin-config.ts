/**
 * The configuration that one plugin of a network gets (CNI spec 1.1.0, "Deriving execution configuration from
 * plugin configuration").
 *
 * `capabilities` stays in it, against the letter of the specification: the reference library never took it out, so
 * every plugin has always seen it.
 */
import type { Network, NetworkPlugin } from "./conf/network.ts";

export interface Derived {
  /** A result in its written form, of whichever version. */
  prevResult?: Readonly<Record<string, unknown>>;
  /** What the caller supplies; each plugin gets the part it declares a capability for. */
  capabilityArgs?: Readonly<Record<string, unknown>>;
  /** For GC; undefined when the caller did not say which attachments are valid. */
  validAttachments?: readonly { containerID: string; ifname: string }[];
}

export function pluginConfig(
  network: Network,
  plugin: NetworkPlugin,
  derived: Derived,
): Record<string, unknown> {
  const { prevResult, capabilityArgs = {}, validAttachments } = derived;
  // Ours come last, where they win over the same key in another letter case.
  const { name: _name, cniVersion: _version, ...config } = plugin.config;
  let runtimeConfig: Record<string, unknown> | undefined;
  for (const name of Object.keys(plugin.capabilities)) {
    if (!plugin.capabilities[name] || !Object.hasOwn(capabilityArgs, name)) continue;
    runtimeConfig ??= Object.create(null) as Record<string, unknown>;
    runtimeConfig[name] = capabilityArgs[name];
  }
  return {
    ...config,
    ...(runtimeConfig && { runtimeConfig }),
    ...(validAttachments && {
      "cni.dev/valid-attachments": validAttachments,
      // The key's name in the tagged 1.1.0 text.
      "cni.dev/attachments": validAttachments,
    }),
    name: network.name,
    cniVersion: network.cniVersion,
    ...(prevResult && { prevResult }),
  };
}
