/** Which capability arguments the plugins of a network take (CNI conventions, "Dynamic Plugin specific fields"). */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import type { Network } from "./conf/network.ts";

export function takes({ plugins }: Network, capability: string): boolean {
  return plugins.some(({ capabilities }) => capabilities[capability]);
}

/** The error for `what`, which somebody wants of these networks. */
export function takesNone(what: string, capability: string, networks: readonly string[]): CniError {
  return new CniError(
    INVALID_CONFIG,
    `${what}: no plugin of network ${networks.join(", ")} takes them`,
    `a plugin that does needs "capabilities": {"${capability}": true} in the network's configuration`,
  );
}
