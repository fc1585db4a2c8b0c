/** What commands show of networks and attachments, and the library's functions return. */
import type { Owner } from "./owner.ts";

/** A file of the configuration directory. */
export interface NetworkSummary {
  file: string;
  /** Undefined for a file that cannot be read. */
  name?: string;
  cniVersion?: string;
  /** Types; a plugin with an IPAM plugin as `bridge+host-local`. */
  plugins: string[];
  pools: Pool[];
  /** What is broken or missing; none when containers can be attached. */
  problems: string[];
  /** Addresses that other networks give out too, or that routes of the host lead elsewhere. */
  warnings: string[];
}

/** Addresses that are handed out together. Each ADD takes one. */
export interface Pool {
  subnets: string[];
  /** For people. */
  ranges: string;
  capacity: number;
  leased: number;
  free: number;
}

export interface AttachmentName {
  readonly containerId: string;
  readonly ifName: string;
}

export interface PlannedPlugin {
  type: string;
  /** In the order in which ADD would make them. Undefined for a plugin of another make, of which nobody knows. */
  resources: PlannedResource[] | undefined;
  /** Why ADD would fail here and now: what it would reject, and errors of STATUS. */
  obstacles: string[];
  /** What ADD would make without effect, such as a port that leads to another container, and what an earlier ADD met. */
  warnings: string[];
}

export interface PlannedResource {
  kind: string;
  /** One line for people. */
  what: string;
}

export interface InspectedAttachment extends AttachmentState, Gist {}

export interface AttachmentState<Resource = InspectedResource> extends Owner {
  netnsPath: string;
  /**
   * `gone`: the container's namespace is gone, and nothing was verified. `elsewhere`: nothing was verified either, but
   * the container lives, or another network namespace of the host is the one to judge that.
   */
  state: "ok" | "differs" | "elsewhere" | "gone";
  plugins: { plugin: string; madeBy: MadeBy; resources: Resource[] }[];
}

/**
 * `others`: foreign plugins, or ours before the ledgers were lost. Restated from configuration and result. `nobody`: the
 * plugin had nothing to make, such as portmap without ports. `unreadable`: there is a ledger that cannot be read or
 * trusted; restated as well.
 */
export type MadeBy = "patchbay" | "others" | "nobody" | "unreadable";

/** What a table of attachments shows. */
export interface Gist {
  addresses: string[];
  ports: string[];
}

export interface InspectedResource {
  kind: string;
  /** One line for people. */
  what: string;
  /** `unknown`: it could not be verified. */
  state: "ok" | "differs" | "unknown";
  differences: string[];
}
