/**
 * The contract every kind of resource keeps, and what a resource may touch.
 *
 * A resource is a thing in the kernel or on disk that one attachment needs: a link, an address, a NAT element,
 * a lease. Its specification is plain JSON and says everything needed to make it, to recognise it and to take
 * it away, because DEL has nothing but that text, written down before the thing was made.
 */
import type { Host } from "./host.ts";

export interface ResourceKind<Spec, Made = void> {
  /** Stands in the ledger; never reuse a name for another specification. */
  readonly kind: string;
  /**
   * Throws when something is in its way. Asked before it is announced: what a ledger names is removed in the end, and
   * what was there before is another's.
   */
  requireRoom?(spec: Spec, host: Host): void;
  /**
   * Makes it, or throws with nothing of it left behind; what it takes back itself, it does by `undoAfter`. Answers what
   * only the kernel could decide.
   */
  apply(spec: Spec, host: Host): Made;
  /** What `apply` would have answered, as far as it is known, when the list is only being restated. */
  readonly unmade: Made;
  /**
   * One line for each difference between the specification and what is there; empty when they agree. `isRestated`: the
   * specification was told from today's configuration, not read from the ledger. Then the thing may have been made in
   * another form: by another backend, or by another program.
   */
  verify(spec: Spec, host: Host, isRestated?: boolean): string[];
  /**
   * Takes it away. What is absent, or has become somebody else's, counts as taken away. With `isRestated`, in whatever
   * form it may have been made.
   */
  remove(spec: Spec, host: Host, isRestated?: boolean): void;
  /**
   * Makes again what `verify` finds missing or altered, and leaves alone what is right (`patchbay repair`). A kind
   * without it cannot be repaired while the container runs, only deleted and added again.
   */
  repair?(spec: Spec, host: Host): void;
  /**
   * The container's link. When it is not there any more, or another one is, nothing else of the attachment is repaired:
   * the path of its namespace may have become another container's.
   */
  readonly isContainerLink?: true;
  /** Known by container and interface alone, like the container's link: the network is no part of its name. */
  readonly isOfInterface?: true;
  /** The table of ours that it stands in: plugins of another make do not take it out of there. */
  ownTable?(spec: Spec): string | undefined;
  /** One line a person reads: `veth eth0 in the container, vethab12cd34 on the host`. */
  describe(spec: Spec): string;
  /** What a table of attachments tells of it: addresses with prefix length, ports as `8080->80/tcp`. */
  gist?(spec: Spec): { addresses?: string[]; ports?: string[] };
  /**
   * A shared thing (a bridge, a base chain) is not removed by DEL. When the ADD that made it fails, it is undone
   * here, given what `apply` answered. Without this, a failed ADD calls `remove`.
   */
  undo?(spec: Spec, made: Made, host: Host): void;
  /**
   * GC without a ledger: takes away what this kind made for attachments of the network that are not valid. Where only
   * the container is known, it is left alone if any attachment of the container is valid.
   */
  sweep?(network: string, isValid: (owner: { containerId: string; ifName?: string }) => boolean, host: Host): void;
}

/**
 * A kind of which nobody needs to know the specification: it comes from a ledger as text, and goes to its kind again.
 * The one `any` there is.
 */
// deno-lint-ignore no-explicit-any
export type AnyKind<Made = any> = ResourceKind<any, Made>;

/** A specification together with its kind: what a plugin hands to the engine. */
export interface Resource<Made = void> {
  readonly kind: AnyKind<Made>;
  readonly spec: unknown;
}

/** Makes the function that plugins call: `masquerade({ … })` for the kind `masqueradeKind`. */
export function resource<Spec, Made>(kind: ResourceKind<Spec, Made>): (spec: Spec) => Resource<Made> {
  return (spec) => ({ kind, spec });
}
