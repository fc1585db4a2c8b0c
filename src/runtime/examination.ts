/** A resident looks at a network before anything is done to it: it may be one whose calls it leaves to their callers. */
import type { Network } from "./conf/network.ts";
import type { Runtime } from "./plugin-call.ts";

type Examine = (network: Network, runtime: Runtime) => void;

let examine: Examine | undefined;

/** What throws LeftToCaller. */
export function examineNetworks(by: Examine): void {
  examine = by;
}

export function examined(network: Network, runtime: Runtime): Network {
  examine?.(network, runtime);
  return network;
}
