/**
 * The contract of a plugin: one function, `add`, that tells the story of ADD in resources.
 *
 * The engine tells the same story for four purposes. For `make`, each `at.apply` makes the resource. For the others
 * nothing is made and the engine collects the list: `check` and `undo` take names and addresses from prevResult; `plan`
 * takes the ones that ADD would choose now.
 */
import type { Result } from "../cni/result.ts";
import type { Resource, Retired, Retirement } from "./resource.ts";
import type { Prefix } from "../net/address.ts";
import type { Host } from "./host.ts";
import type { Pool } from "./summaries.ts";

export interface PluginConfig {
  cniVersion: string;
  name: string;
  type: string;
  ipam?: { type?: string };
  dns?: Result["dns"];
  prevResult?: unknown;
  runtimeConfig?: Record<string, unknown>;
  args?: Record<string, unknown>;
}

/** What a plugin's `add` knows about the attachment, and everything it can do to it. */
export interface Attachment<Config> {
  readonly conf: Config;
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
  /** CNI_NETNS unchanged: results and the ledger repeat it. */
  readonly netnsPath: string;
  /** CNI_ARGS unchanged; cni/args.ts parses it. */
  readonly cniArgs: string;
  /** The configuration as text: after parsing, a repeated key can no longer be detected. */
  readonly stdin: string;
  /** Already converted to the newest version. */
  readonly prevResult: Result | undefined;
  readonly purpose: Purpose;
  readonly host: Host;
  /**
   * Whether something that depends on an option belongs to the story. For `undo` it always does: the configuration may
   * have changed since ADD, and removing something absent does no harm.
   */
  mayHave(option: boolean): boolean;
  /** What the configuration says; for `undo` returns `unknown`, because it may have changed since ADD. */
  configured<Value>(read: () => Value, unknown: Value): Value;
  /** Runs `work` for `make` only: things that only ADD can look at or reject. Undefined for the other purposes. */
  inAdd<Value>(work: () => Value): Value | undefined;
  /**
   * Runs `work`, which looks at the host and may reject, for `make` and `plan`. For `plan` a rejection is told, and the
   * story goes on; it and the other purposes return undefined.
   */
  examine<Value>(work: () => Value): Value | undefined;
  /**
   * For `plan`, the specifications of this kind that earlier plugins of the chain would make. None for the other purposes:
   * there they are made.
   */
  plannedBefore(kind: string): readonly unknown[];
  /** A name or address that ADD chooses. `make` and `plan` pick one; `check` and `undo` take it from prevResult. */
  choose<Value>(pick: () => Value, recall: (prevResult: Result) => Value): Value;
  apply<Made>(resource: Resource<Made>): Made;
  /** Announces all resources with one write to the ledger, then makes each. */
  applyAll(resources: readonly Resource<unknown>[]): void;
  /**
   * The configured IPAM plugin, or undefined for a layer-2 network. Announces its lease, which has an address unless
   * `mayBeEmpty`.
   */
  ipam(mayBeEmpty?: boolean): Ipam | undefined;
}

export type Purpose = "make" | "check" | "undo" | "plan";

export interface Ipam {
  /** Takes the lease. For `check` and `undo` returns the data of prevResult, for `plan` what ADD would get. */
  add(): Result;
}

/** The part of a call that `judge` examines. */
export type JudgedCall = Pick<Attachment<PluginConfig>, "ifName" | "cniArgs" | "stdin" | "prevResult">;

/** What a call may wait for, other than the kernel. */
export type Awaited =
  | "DHCP"
  | "delegate"
  | "duplicate address detection"
  | "SELinux"
  | "firewalld"
  | "legacy iptables"
  | "aardvark-dns";

/** Addresses from `start` to `end` inclusive. */
export interface AddressSpan {
  subnet: Prefix;
  start: Uint8Array;
  end: Uint8Array;
}

/** Addresses that are handed out together. */
export interface AddressPool {
  readonly spans: readonly AddressSpan[];
  /** Where its leases are, when other networks may lease there, too: together they give no address twice. */
  readonly sharedLeases?: string;
  /** How full it is. A full pool is no failure of STATUS. */
  count(): Pool;
}

/** Where a configuration does not do what it seems to. */
export interface Caveat {
  /** The option, as a path in the plugin's configuration; "" for the plugin itself. */
  key: string;
  text: string;
  /** ADD, and so `plan`, refuse it in words of their own. */
  isRefused?: true;
}

/** A plugin's configuration before it is decoded: another plugin may need keys that this one drops. */
export interface Written {
  type: string;
  document: Readonly<Record<string, unknown>>;
}

/** A plugin of a network, for those that stand behind it. */
export interface Earlier extends Written {
  /** Undefined for a plugin of another make. */
  own: PluginDefinition<PluginConfig> | undefined;
}

/** A plugin in its network. */
export interface Placed extends Earlier {
  before: readonly Earlier[];
  /** Undefined for those who look at files alone. */
  host: Host | undefined;
}

/** Where the containers of a network are. */
export interface Segment {
  /** The host's link that they share; undefined when each has its own. */
  link?: string;
  /** The host has a route to their subnet. */
  isRouted: boolean;
}

/** A plugin: what its calls need, and with `WholeNetwork` and `Waiting` what only some have to say. */
export interface PluginDefinition<Config extends PluginConfig> extends WholeNetwork<Config>, Waiting<Config> {
  readonly name: string;
  /** Supported CNI versions; all known ones by default. */
  readonly versions?: readonly string[];
  /** Decodes the configuration, or throws a CniError with key and value. */
  readonly validate: (config: unknown) => Config;
  /**
   * Throws a CniError when ADD must reject the configuration or the call. The engine calls it before it tells the
   * story, except for `undo`. STATUS has no call (engine/judging.ts).
   */
  judge?(conf: Config, call: JudgedCall | undefined): void;
  /** For a plugin that needs earlier ones in the chain: the error text of an ADD without prevResult. */
  readonly missingPrevResult?: string;
  /** Applies the resources of one attachment in order and returns the result. */
  add(at: Attachment<Config>): Result;
  /** The result that ADD would return now, for plugins whose `add` cannot compute it for `plan`. */
  foresee?(at: Attachment<Config>): Result;
  /** For plugins whose CHECK examines more than resources: one line for each difference. */
  check?(at: Attachment<Config>): string[];
  /** CHECK of most plugins needs the result of ADD. */
  readonly checksWithoutPrevResult?: boolean;
  /**
   * Throws a CniError of code 50 or 51 when ADD could not work on this host now. The runtime passes no capabilities,
   * CNI_ARGS or prevResult to STATUS, so their absence is no failure. `document` also has the keys that other plugins decode.
   */
  status?(conf: Config, host: Host, document: Readonly<Record<string, unknown>>): void;
  /** The plugin that this one delegates to: the engine calls its GC and STATUS too. Not needed for IPAM plugins. */
  passedOn?(conf: Config): { type: string; conf: Record<string, unknown> } | undefined;
  /**
   * DEL of plugins with their own record, such as the lease store. They own nothing in the container, so its namespace
   * may be gone for any verb.
   */
  del?(at: Attachment<Config>): void;
  /** The plugin neither makes nor stores anything: DEL succeeds whatever the configuration says. */
  readonly keepsNothing?: true;
}

/** What commands on a whole network ask: GC, lint, plan, networks, `network remove`. */
interface WholeNetwork<Config> {
  /** Kinds of resources that GC sweeps, independent of the configuration (`sweep` in contract/resource.ts). */
  readonly sweeps?: readonly string[];
  /** What GC does besides removing the resources of invalid attachments. */
  gc?(conf: Config, isValid: (owner: { containerId: string; ifName?: string }) => boolean, host: Host): void;
  /** What the plugin keeps of the network itself, as `retire` of resources. */
  retire?(conf: Config, retirement: Retirement): Retired[];
  /** Where its containers are, unless they reach nobody. */
  segment?(conf: Config): Segment;
  /** For a plugin whose containers' packets do not meet the host's rules. */
  readonly isBesideHost?: true;
  /** The addresses that it gives out, as far as the configuration says. */
  pools?(conf: Config): AddressPool[];
  /** The addresses that each ADD gives out, whoever has them. */
  fixedAddresses?(conf: Config): string[];
  /** The capability whose argument has to say what the configuration does not: without it ADD makes nothing, or fails. */
  missingCapability?(conf: Config): string | undefined;
  /** What of the configuration has no effect, or not the one that is meant. */
  caveats?(conf: Config, placed: Placed): Caveat[];
  /**
   * Why ADD does not find the device of the host that it would lend to a container. That is no failure of STATUS: a
   * container may have it.
   */
  absentDevice?(conf: Config, host: Host): string | undefined;
}

/** What a call waits for, and who has to wait for it. */
interface Waiting<Config> {
  /**
   * What a call with this configuration may wait for, whatever its verb: a resident leaves it to the caller's own process.
   * The configuration has not been decoded, because nothing is refused before a resident has taken the call.
   */
  mayWaitFor?(document: Record<string, unknown>): readonly Awaited[];
  /** For an IPAM plugin that gives a lease back by a packet through the container's link: DEL releases it before the link. */
  readonly isReleasedThroughLink?: true;
  /** The directory that the plugin's own caller locks, for one call at a time. Others that delete lock it, too. */
  lockedDirectory?(conf: Config): string | undefined;
}

export function definePlugin<Config extends PluginConfig>(
  definition: PluginDefinition<Config>,
): PluginDefinition<Config> {
  return definition;
}
