/**
 * The contract of a plugin: one function, `add`, that tells the story of ADD in resources.
 *
 * The engine tells the same story for four purposes. For `make` each `at.apply` makes the resource. For the others it
 * makes nothing and collects the list: `check` and `undo` take names and addresses from prevResult, for an attachment
 * without a ledger; `plan` takes the ones that ADD would choose now.
 */
import type { Result } from "../cni/result.ts";
import type { Resource } from "./resource.ts";
import type { Host } from "./host.ts";

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

/** What a plugin's `add` sees of the attachment, and all it can do to it. */
export interface Attachment<Config> {
  readonly conf: Config;
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
  /** CNI_NETNS word for word: results and the ledger repeat it. */
  readonly netnsPath: string;
  /** CNI_ARGS word for word; see cni/args.ts for reading it. */
  readonly cniArgs: string;
  /** The configuration word for word: once parsed, nobody can tell whether a key stood there twice. */
  readonly stdin: string;
  /** Already converted to the newest version. */
  readonly prevResult: Result | undefined;
  readonly purpose: Purpose;
  readonly host: Host;
  /**
   * Whether something that depends on an option belongs to the story. For `undo` it does, whatever the option is today:
   * the configuration may have changed since ADD, and removing what is absent does no harm.
   */
  mayHave(option: boolean): boolean;
  /** What the configuration says, as far as it counts: for `undo` it may not be what ADD was given, and `unknown` does. */
  configured<Value>(read: () => Value, unknown: Value): Value;
  /** For `make` alone: what nothing but the moment of ADD shows, or refuses. Undefined for the other purposes. */
  inAdd<Value>(work: () => Value): Value | undefined;
  /** A name or address that ADD picks. `make` and `plan` pick one; the others recall what prevResult tells of it. */
  choose<Value>(pick: () => Value, recall: (told: Result) => Value): Value;
  apply<Made>(resource: Resource<Made>): Made;
  /** Announces all, then makes each: one write to the ledger for several resources. */
  applyAll(resources: readonly Resource<unknown>[]): void;
  /** The IPAM plugin that the configuration names, or undefined for a layer-2 network. Its lease is announced. */
  ipam(): Ipam | undefined;
}

/** What the story is told for. */
export type Purpose = "make" | "check" | "undo" | "plan";

export interface Ipam {
  /** Takes the lease. `check` and `undo` answer prevResult's addresses, routes and DNS; `plan` what ADD would get. */
  add(): Result;
}

/** What `judge` sees of a call. */
export type JudgedCall = Pick<Attachment<PluginConfig>, "ifName" | "cniArgs" | "stdin" | "prevResult">;

/** Addresses, one of which each ADD takes. */
export interface Pool {
  ranges: string;
  subnets: string[];
  leased: number;
  free: number;
  capacity: number;
}

export interface PluginDefinition<Config extends PluginConfig> {
  readonly name: string;
  /** Versions it speaks; all known ones unless said otherwise. */
  readonly versions?: readonly string[];
  /** Decodes the configuration, or throws a CniError that names key and value. */
  readonly validate: (config: unknown) => Config;
  /**
   * Throws a CniError when the values of the configuration, or the call, are such that ADD refuses them. The engine
   * asks it before the story is told, except for `undo`, and for STATUS, which has no call (engine/judging.ts).
   */
  judge?(conf: Config, call: JudgedCall | undefined): void;
  /** For a plugin that works on what earlier ones made: the text with which ADD refuses to run without prevResult. */
  readonly missingPrevResult?: string;
  /** The resources of one attachment in the order they come to be, and the result. */
  add(at: Attachment<Config>): Result;
  /** What ADD would answer now, for plugins whose `add` cannot tell that for `plan`. */
  foresee?(at: Attachment<Config>): Result;
  /** Where CHECK looks at more than resources: one line for each difference. */
  check?(at: Attachment<Config>): string[];
  /** CHECK of most plugins makes no sense without the result of ADD. */
  readonly checksWithoutPrevResult?: boolean;
  /**
   * Throws a CniError of code 50 or 51 when ADD could not work on this host now. What ADD gets from the runtime beside
   * the configuration (capabilities, CNI_ARGS, prevResult) is not there, and must not be missed.
   */
  status?(conf: Config, host: Host): void;
  /** How full is what ADD gives out; a full pool is no failure of STATUS. */
  pools?(conf: Config): Pool[];
  /** Kinds of resources that GC sweeps, whatever the configuration says today (`sweep` in contract/resource.ts). */
  readonly sweeps?: readonly string[];
  /** What else GC does besides removing the resources of attachments that are not valid. */
  gc?(conf: Config, isValid: (owner: { containerId: string; ifName?: string }) => boolean, host: Host): void;
  /** The plugin in this one's stead, for GC and STATUS: they reach it too. IPAM plugins they reach without. */
  passedOn?(conf: Config): { type: string; conf: Record<string, unknown> } | undefined;
  /** Nothing is made or kept: DEL succeeds, whatever the configuration says. */
  readonly keepsNothing?: true;
  /**
   * DEL of plugins that keep their own record, such as the lease store. They own nothing in the container, so its
   * namespace may be gone for any verb.
   */
  del?(at: Attachment<Config>): void;
}

export function definePlugin<Config extends PluginConfig>(
  definition: PluginDefinition<Config>,
): PluginDefinition<Config> {
  return definition;
}
