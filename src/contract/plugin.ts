/**
 * The contract of a plugin: one function that tells the story of its ADD in resources.
 *
 * The engine runs that function in three ways. For ADD each `at.apply` makes the resource. For DEL and CHECK of an
 * attachment whose ledger is lost, and for `plan`, the same function runs with nothing applied ("restating"):
 * addresses and names then come from prevResult, and the list that comes out is removed, verified or shown.
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
  /** True when nothing may be made: the list is restated for DEL, CHECK or `plan`. */
  readonly restating: boolean;
  /** Only so that it can be taken away: a DEL without ledger. It judges no configuration. */
  readonly removing: boolean;
  readonly host: Host;
  /**
   * Whether something that depends on an option belongs to the story. A DEL without ledger says yes whatever the option
   * is today: the configuration may have changed since ADD, and removing what is absent does no harm.
   */
  mayHave(option: boolean): boolean;
  apply<Made>(resource: Resource<Made>): Made;
  /** Announces all, then makes each: one write to the ledger for several resources. */
  applyAll(resources: readonly Resource<unknown>[]): void;
  /** The IPAM plugin named by the configuration, or undefined for a layer-2 network. Released when ADD fails. */
  ipam(): Ipam | undefined;
  /** Lets another plugin do the work. Answers its result; when restating, prevResult. */
  delegate(delegation: Delegation): Result;
  /** A name or address picked for this attachment; when restating, what prevResult tells of it, or "". */
  choose(fresh: () => string, recall: (result: Result) => string | undefined): string;
}

export interface Ipam {
  /** Runs the delegate's ADD; when restating, answers the addresses, routes and DNS of prevResult. */
  add(): Result;
}

/** Addresses, one of which each ADD takes. */
export interface Pool {
  ranges: string;
  subnets: string[];
  leased: number;
  free: number;
  capacity: number;
}

/** A plugin that works in another one's stead. */
export interface Delegation {
  type: string;
  /** The configuration it gets, word for word. */
  stdin: string;
  /** The file that says the same, for as long as what it made is there. */
  keptIn: string;
}

export interface PluginDefinition<Config extends PluginConfig> {
  readonly name: string;
  /** Versions it speaks; all known ones unless said otherwise. */
  readonly versions?: readonly string[];
  /** Validates and returns the configuration, or throws a CniError that names key and value. */
  readonly validate: (config: unknown) => Config;
  /** The resources of one attachment in the order they come to be, and the result. */
  add(at: Attachment<Config>): Result;
  /** What ADD would answer now, with nothing taken, for plugins whose restated `add` has nothing but prevResult. */
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
  /** What GC does besides removing the resources of attachments that are not valid. */
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
