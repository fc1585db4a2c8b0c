/**
 * Kinds of resources that can be written in more than one way: in a table of ours, in the tables of iptables, by
 * firewalld. A `Backend` is one way. `Backends` has all ways of a kind, and chooses between them.
 *
 * A specification names the backend that ADD used. A restated specification (see ResourceKind) names what is configured
 * today: ADD may have used another backend, or may have been the reference plugin's. Then all backends are asked.
 */
import { CniError } from "../../../cni/error.ts";
import { attemptAll } from "../../../contract/failures.ts";
import type { Host } from "../../../contract/host.ts";
import type { ResourceKind } from "../../../contract/resource.ts";
import { undoAfter } from "../../../contract/undo.ts";
import { undoUnlessRefused } from "../../../contract/undo-unless-refused.ts";
import type { IsValid } from "./owner-comment.ts";
import { lacksNfTables, netfilterOf } from "./netfilter-socket.ts";

export interface Backend<Spec, Made = void> {
  /**
   * Makes it, and mends what others altered of it. Returns false when the kernel has no nf_tables; a CniError is a
   * refusal with nothing made. `made` collects what `undo` of the kind needs.
   */
  apply(spec: Spec, host: Host, made?: Made): boolean;
  /** One line for each difference. */
  verify(spec: Spec, host: Host): string[];
  /** Without it, `apply` repairs. */
  repair?(spec: Spec, host: Host): boolean;
  /** With `isRestated`, the backend of the specification may be another one, and its addresses may be unknown. */
  remove(spec: Spec, host: Host, isRestated: boolean): void;
  /** For GC: removes what belongs to attachments of the network that are not valid. */
  sweep?(network: string, isValid: IsValid, host: Host): void;
  /** For `patchbay plan`: throws what `apply` would reject. */
  judge?(spec: Spec, host: Host): void;
  /** For STATUS: why `apply` would fail on this host, found without making anything. */
  obstacle?(spec: Spec, host: Host): string | undefined;
  /** It writes nf_tables only: where the kernel has none, there is nothing to remove. */
  readonly onlyNfTables?: true;
  /** `apply` makes several requests: when one is refused, the others are undone. */
  readonly inSteps?: true;
}

/** For `obstacle`. */
export const obstacles = () => require("./netfilter-obstacle.ts") as typeof import("./netfilter-obstacle.ts");

/** What a backend of the reference plugins wrote: recognised and removed, never written. */
export type ForeignBackend<Spec> = Pick<Backend<Spec>, "verify" | "remove" | "sweep" | "onlyNfTables">;

export class Backends<Spec extends { backend: string }, Made = void> {
  /** `what` begins the error of a kernel without nf_tables: "ipMasq needs". Backends are loaded when used. */
  constructor(
    private readonly what: string,
    private readonly ours: Readonly<Record<Spec["backend"], () => Backend<Spec, Made>>>,
    private readonly foreign?: () => ForeignBackend<Spec>,
  ) {}

  /** Runs `undo` when something may have been made in spite of the error. */
  apply(spec: Spec, host: Host, undo: () => void, made?: Made): void {
    const backend = this.chosen(spec);
    try {
      if (!backend.apply(spec, host, made)) throw lacksNfTables(this.what);
    } catch (error) {
      if (backend.inSteps) undoAfter(error, undo);
      else if (!(error instanceof CniError)) undoUnlessRefused(error, undo);
      throw error;
    }
  }

  /** The methods of the kind besides `apply`. */
  readonly verbs: Required<Pick<ResourceKind<Spec>, "judge" | "verify" | "repair" | "remove" | "sweep">> = {
    judge: (spec, host) => this.chosen(spec).judge?.(spec, host),
    verify: (spec, host, isRestated) => {
      const differences = this.chosen(spec).verify(spec, host);
      if (differences.length === 0 || !isRestated) return differences;
      return this.others(spec).some((load) => load().verify(spec, host).length === 0) ? [] : differences;
    },
    repair: (spec, host) => {
      const backend = this.chosen(spec);
      if (!(backend.repair ?? backend.apply)(spec, host)) throw lacksNfTables(this.what);
    },
    remove: (spec, host, isRestated = false) => {
      const backends = [() => this.chosen(spec), ...isRestated ? this.others(spec) : []];
      forEach(backends, host, (one) => one.remove(spec, host, isRestated));
    },
    sweep: (network, isValid, host) => forEach(this.all(), host, (one) => one.sweep?.(network, isValid, host)),
  };

  obstacle(spec: Spec, host: Host): string | undefined {
    return this.chosen(spec).obstacle?.(spec, host);
  }

  private chosen({ backend }: Spec): Backend<Spec, Made> {
    return this.ours[backend as Spec["backend"]]();
  }

  private others({ backend }: Spec): (() => ForeignBackend<Spec>)[] {
    return this.all().filter((load) => load !== this.ours[backend as Spec["backend"]]);
  }

  private all(): (() => ForeignBackend<Spec>)[] {
    const ours: (() => ForeignBackend<Spec>)[] = Object.values(this.ours);
    return this.foreign === undefined ? ours : [this.foreign, ...ours];
  }
}

/** Tries every backend, even if another one fails. */
function forEach<Spec>(
  loaders: readonly (() => ForeignBackend<Spec>)[],
  host: Host,
  work: (backend: ForeignBackend<Spec>) => void,
): void {
  attemptAll(loaders.map((load) => () => {
    const backend = load();
    if (!backend.onlyNfTables || netfilterOf(host) !== undefined) work(backend);
  }));
}
