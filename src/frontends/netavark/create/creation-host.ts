import type { PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";

/** What `create` needs besides the document. */
export interface CreationHost {
  /** Names of the host's links. */
  linkNames(): readonly string[];
  random(count: number): Uint8Array;
  /** Asks the program that is the network's driver, and returns the network as it wants it. */
  askForeignDriver(network: PodmanNetwork): PodmanNetwork;
  now(): Date;
}
