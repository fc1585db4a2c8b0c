/** Which capability arguments the plugins of a network take (CNI conventions, "Dynamic Plugin specific fields"). */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import { warn } from "../process/warn.ts";
import type { Network } from "./conf/network.ts";

export function takesCapability({ plugins }: Network, capability: string): boolean {
  return plugins.some(({ capabilities }) => Object.hasOwn(capabilities, capability) && capabilities[capability]);
}

/** The error for `what`, which somebody wants of these networks. */
export function takesNone(what: string, capability: string, networks: readonly string[]): CniError {
  return new CniError(
    INVALID_CONFIG,
    `${what}: no plugin of network ${networks.join(", ")} takes them`,
    `a plugin that does needs "capabilities": {"${capability}": true} in the network's configuration`,
  );
}

/** Plugins get what they declare, so nothing else reports an argument that is misspelt, or that none declares. */
export function warnOfUntaken(networks: readonly Network[], capabilityArgs: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(capabilityArgs)) {
    if (networks.some((network) => takesCapability(network, name))) continue;
    const meant = meantCapability(name, networks), names = networks.map((network) => network.name).join(", ");
    const hint = meant === undefined
      ? `a plugin that does needs "capabilities": {${JSON.stringify(name)}: true}`
      : `did you mean ${JSON.stringify(meant)}?`;
    warn(`capability argument ${JSON.stringify(name)}: no plugin of network ${names} takes it; ${hint}`);
  }
}

function meantCapability(name: string, networks: readonly Network[]): string | undefined {
  const { wellKnownCapabilities } = require("./lint/schema.ts") as typeof import("./lint/schema.ts");
  const { closestKey } = require("../cni/spelling.ts") as typeof import("../cni/spelling.ts");
  const declared = networks.flatMap(({ plugins }) =>
    plugins.flatMap(({ capabilities }) => Object.keys(capabilities))
  );
  const known = [...declared, ...wellKnownCapabilities()];
  return known.includes(name) ? undefined : closestKey(name, known);
}
