import type { PodmanNetwork as Network } from "../../documents/netavark.schema.ts";

/** What there is outside of the document. */
export interface Place {
  /** Names of the host's links. */
  linkNames(): readonly string[];
  random(count: number): Uint8Array;
  /** The network as the plugin for its driver wants it. */
  askPlugin(network: Network): Network;
  now(): Date;
}
