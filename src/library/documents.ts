/** What goes into the library's functions and comes out, for programs that use it. The runtime's own types have to fit these. */

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

/** A network that was read, from a file or an object. It is data: it may be kept, and sent to a worker. */
export interface Network {
  readonly name: string;
  /** The version it runs in; "" when the configuration names none. */
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly disableGC: boolean;
  readonly loadOnlyInlinedPlugins: boolean;
  readonly plugins: readonly NetworkPlugin[];
  /** The file, for a network that was found by its name. */
  readonly path?: string;
  /** The configuration as JSON. */
  readonly source: string;
}

export interface NetworkPlugin {
  readonly type: string;
  readonly name: string;
  readonly capabilities: Readonly<Record<string, boolean>>;
  readonly config: Record<string, unknown>;
}

/** A file of the configuration directory. */
export interface NetworkFile {
  file: string;
  /** Missing for a file that cannot be read. */
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

/** Addresses that are handed out together. */
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
  /** In the order in which `add` would make them. Undefined for a plugin of another make. */
  resources: { kind: string; what: string }[] | undefined;
  /** Why `add` would fail here and now. */
  obstacles: string[];
  /** What `add` would make without effect, such as a port that leads to another container. */
  warnings: string[];
}

export interface InspectedAttachment {
  network: string;
  containerId: string;
  ifName: string;
  netnsPath: string;
  addresses: string[];
  ports: string[];
  /** `gone`: the container's namespace is gone, and nothing was looked at. */
  state: "ok" | "differs" | "gone";
  plugins: {
    plugin: string;
    madeBy: "patchbay" | "others" | "nobody" | "unreadable";
    resources: InspectedResource[];
  }[];
}

export interface InspectedResource {
  kind: string;
  /** One line for people. */
  what: string;
  /** `unknown`: nobody can tell. */
  state: "ok" | "differs" | "unknown";
  differences: string[];
}

export interface Options {
  /** Where networks are found by name; `/etc/cni/net.d` unless given. */
  readonly configDirectory?: string;
  /** Directories of plugins, joined by `:`. Without it, the plugins are those of this package, in process. */
  readonly pluginPath?: string;
  /** Where results are recorded; `/var/lib/cni` unless given. All programs that share containers share it. */
  readonly cacheDirectory?: string;
  /** false: never hand a call to a resident. */
  readonly resident?: boolean;
  /** Gets warnings, after the call in which they arose. Without it they go to stderr. */
  readonly onWarning?: (message: string) => void;
}

/** What a network's plugins may want of an attachment. Each gets what it declares in its `capabilities`. */
export type Capabilities =
  & KnownCapabilities
  & { readonly [name: string]: unknown }
  & { readonly [Name in Slip<keyof KnownCapabilities>]?: never };

/** What somebody types in place of a name: without its capital letters, or as the singular. */
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
