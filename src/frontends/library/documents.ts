/** The types of the library's arguments. Its results have the runtime's own types. */
export type {
  AttachmentName,
  InspectedAttachment,
  InspectedResource,
  NetworkSummary as NetworkFile,
  PlannedPlugin,
  Pool,
} from "../../contract/summaries.ts";
export type { Network, NetworkPlugin } from "../../runtime/conf/network.ts";

/** A network's configuration as it is written in a file (CNI spec 1.1.0, "Section 1: Network configuration format"). */
export interface NetworkConfig {
  readonly cniVersion: string;
  readonly cniVersions?: readonly string[];
  readonly name: string;
  readonly disableCheck?: boolean;
  readonly disableGC?: boolean;
  readonly plugins: readonly PluginConfig[];
}

export interface PluginConfig {
  readonly type: string;
  /** What the plugin takes of an attachment's `capabilities`: `{ portMappings: true }`. */
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [key: string]: unknown;
}

export interface Options {
  /** Where networks are found by name; `/etc/cni/net.d` unless given. */
  readonly configDirectory?: string;
  /** Directories of plugins, joined by `:`. Without it, the plugins are those of this package, in process. */
  readonly pluginPath?: string;
  /** Where results are recorded; `/var/lib/cni` unless given. All programs that share containers share it. */
  readonly cacheDirectory?: string;
  /** Gets warnings, after the call in which they arose. Without it they go to stderr. */
  readonly onWarning?: (message: string) => void;
}

/** Capability arguments of an attachment. Each plugin gets those that it declares in its `capabilities`. */
export type Capabilities =
  & KnownCapabilities
  & { readonly [name: string]: unknown }
  & { readonly [Name in Slip<keyof KnownCapabilities>]?: never };

/** Likely misspellings of a name: without its capital letters, or as the singular. */
type Slip<Name extends string> = Exclude<
  Lowercase<Name> | Capitalize<Name> | (Name extends `${infer Singular}s` ? Singular : `${Name}s`),
  keyof KnownCapabilities
>;

export interface KnownCapabilities {
  readonly portMappings?: readonly PortMapping[];
  /** Rates in bits per second, bursts in bits. */
  readonly bandwidth?: {
    readonly ingressRate?: number;
    readonly ingressBurst?: number;
    readonly egressRate?: number;
    readonly egressBurst?: number;
  };
  /** Addresses to use, with or without the length of the prefix. */
  readonly ips?: readonly string[];
  readonly ipRanges?: readonly (readonly AddressRange[])[];
  readonly mac?: string;
  readonly dns?: {
    readonly servers?: readonly string[];
    readonly searches?: readonly string[];
    readonly options?: readonly string[];
  };
  readonly aliases?: Readonly<Record<string, readonly string[]>>;
  readonly deviceID?: string;
  readonly infinibandGUID?: string;
  readonly cgroupPath?: string;
}

export interface PortMapping {
  readonly hostPort: number;
  readonly containerPort: number;
  readonly protocol?: "tcp" | "udp" | "sctp";
  readonly hostIP?: string;
}

export interface AddressRange {
  readonly subnet: string;
  readonly rangeStart?: string;
  readonly rangeEnd?: string;
  readonly gateway?: string;
}

export interface Attachment {
  readonly containerId: string;
  /** The path of the container's network namespace, as in `/proc/4711/ns/net`. */
  readonly netns: string;
  /** Its name in the container; `eth0` unless given. */
  readonly ifName?: string;
  /** CNI_ARGS: `{ IgnoreUnknown: "1", K8S_POD_NAME: "web" }`. */
  readonly args?: Readonly<Record<string, string>>;
  readonly capabilities?: Capabilities;
}

/** The namespace may be gone, and then its path does not matter. */
export type DetachedAttachment = Omit<Attachment, "netns"> & { readonly netns?: string };
