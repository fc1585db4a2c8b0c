/**
 * What commands show of networks and attachments, and the library's functions return. Problems and obstacles are texts
 * there; before, they may be the errors themselves, which have a next step.
 */
import type { Owner } from "./owner.ts";

/** A file of the configuration directory. */
export interface NetworkSummary<Problem = string> {
  file: string;
  /** Undefined for a file that cannot be read. */
  name?: string;
  cniVersion?: string;
  /**
   * `broken`: something of `problems` keeps ADD from working. `full`: only a pool without addresses does. `differs`: ADD
   * works, and `differences` says what does not.
   */
  state: "ok" | "broken" | "full" | "differs";
  /** Types; a plugin with an IPAM plugin as `bridge+host-local`. */
  plugins: string[];
  pools: Pool[];
  /** The addresses that every container gets. */
  fixedAddresses: string[];
  /** What is broken or missing; none when containers can be attached. */
  problems: Problem[];
  /** Where what its containers share on the host is not as ADD made it. */
  differences: string[];
  /**
   * Addresses that other networks give out too, that routes of the host lead elsewhere, or that a container has already;
   * options without the effect that they seem to have.
   */
  warnings: string[];
}

/** Addresses that are handed out together. Each ADD takes one. */
export interface Pool {
  subnets: string[];
  /** For people. */
  ranges: string;
  capacity: Count;
  leased: number;
  free: Count;
}

/** A bigint where a number would lose digits, which only pools of IPv6 need. */
export type Count = number | bigint;

export interface AttachmentName {
  readonly containerId: string;
  readonly ifName: string;
}

export interface PlannedPlugin<Obstacle = string> {
  type: string;
  /** In the order in which ADD would make them. Undefined for a plugin of another make, of which nobody knows. */
  resources: PlannedResource[] | undefined;
  /** Why ADD would fail here and now: what it would reject, and errors of STATUS. */
  obstacles: Obstacle[];
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
  /** What engines call the container: a pod, also with its Kubernetes namespace, or podman's name. */
  names: string[];
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
  /** Everything is as it was made, and what differs is what others do. */
  isOfOthers?: true;
}
