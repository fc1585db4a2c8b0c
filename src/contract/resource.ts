/**
 * The contract of every kind of resource.
 *
 * A resource is a thing in the kernel or on disk that one attachment needs: a link, an address, a NAT element, a lease.
 * Its specification is plain JSON and contains everything needed to make, recognise and remove it, because DEL has only
 * that text, which was written before the thing was made.
 */
import type { IpConfig } from "../cni/result.ts";
import type { Ruleset } from "../net/netfilter/ruleset.ts";
import type { Host } from "./host.ts";
import type { PortClaimant } from "./host-ports.ts";

/** One whose `apply` returns something says what stands for it. */
export type ResourceKind<Spec, Made = void> =
  & KindOf<Spec, Made>
  & (Made extends object | string ? { readonly unmade: Made } : unknown);

/** What a call needs of a kind, and with `Role` and `BesideCalls` what only some have to say. */
interface KindOf<Spec, Made> extends Role<Spec>, BesideCalls<Spec> {
  /** Written to the ledger. Never reuse a name for another specification. */
  readonly kind: string;
  /**
   * Throws when another thing is in the way. Called before the resource is announced, because DEL removes whatever the
   * ledger names, and the other thing is not ours.
   */
  requireRoom?(spec: Spec, host: Host): void;
  /** For `patchbay plan`: throws what `apply` would reject before it makes anything, besides what `requireRoom` says. */
  judge?(spec: Spec, host: Host): void;
  /**
   * Makes the resource and returns what only the kernel could decide. On failure it leaves nothing behind; it undoes
   * its own steps with `undoAfter`.
   */
  apply(spec: Spec, host: Host): Made;
  /** Stands for the value of `apply` when the list is only restated. */
  readonly unmade?: Made;
  /**
   * Undoes `apply` when ADD fails; `made` is what `apply` returned. For shared things (a bridge, a base chain), which
   * DEL does not remove. Without it, a failed ADD calls `remove`.
   */
  undo?(spec: Spec, made: Made, host: Host): void;
  /**
   * One line for each difference between the specification and the kernel; empty when they agree. `isRestated`: the
   * specification comes from the current configuration, not from the ledger. Then another backend or another program
   * may have made the thing in another form.
   */
  verify(spec: Spec, host: Host, isRestated?: boolean): string[];
  /**
   * Restores what `verify` finds missing or altered and does not touch the rest (`patchbay repair`). A kind without
   * `repair` can only be deleted and added again.
   */
  repair?(spec: Spec, host: Host): void;
  /**
   * Removes the resource. Succeeds when it is absent or now belongs to somebody else. With `isRestated`, removes every
   * form in which it may have been made.
   */
  remove(spec: Spec, host: Host, isRestated?: boolean): void;
  /** One line for people: `veth eth0 in the container, vethab12cd34 on the host`. */
  describe(spec: Spec): string;
}

/** What the engine goes by when it puts the resources of an attachment in order, and looks for its container. */
interface Role<Spec> {
  /**
   * The container's link. When it is missing or replaced, nothing else of the attachment is repaired: the path of the
   * namespace may belong to another container now.
   */
  readonly isContainerLink?: true;
  /** The side of the container's link that is on the host. */
  hostSide?(spec: Spec): HostSide;
  /** Identified by container and interface alone, like the container's link: its name does not contain the network. */
  readonly isOfInterface?: true;
  /**
   * Keeps the container's link from sending what it may not. Stories make it before what `opensLink`, so that there is no
   * packet before it, and DEL undoes it after the link (engine/story-order.ts).
   */
  readonly confines?: true;
  /** From here on the container's link can send. */
  readonly opensLink?: true;
  /** Each operation is a verb of another plugin. DEL calls it once for what is recorded and restated alike. */
  readonly isDelegated?: true;
  /** Addresses for the attachment. The first one of a list is released last, when nothing uses its addresses any more. */
  readonly isLease?: true;
  /** The addresses that it puts into the container. CHECK compares those of prevResult as well as those of the ledger. */
  addressesIn?(spec: Spec): IpConfig[];
  /** The destinations to which it gives the container routes. */
  routesIn?(spec: Spec): string[];
}

/** What is read of a host once for many attachments. */
export interface HostLook {
  /** The rules of nf_tables; undefined where they cannot be read. */
  rules(): Ruleset | undefined;
  /** What `work` finds, also for all who ask by the same key. */
  once<Found>(key: string, work: () => Found): Found;
}

/** What is asked beside calls: by GC, by commands on a whole network, and by those who look at a host. */
interface BesideCalls<Spec> {
  /**
   * GC without a ledger: removes what this kind made for invalid attachments of the network. When only the container is
   * known, keeps the thing if any attachment of the container is valid.
   */
  sweep?(network: string, isValid: (owner: { containerId: string; ifName?: string }) => boolean, host: Host): void;
  /** The containers of the network share it on the host, and DEL leaves it. `verify` needs no container. */
  readonly isSharedOnHost?: true;
  /**
   * The network goes, and nothing is attached to it: removes what DEL leaves because the network's containers share it.
   * `specs` are what its configuration says today, if there is one.
   */
  retire?(retirement: Retirement, specs: readonly Spec[], host: Host): Retired[];
  /** Ports of the host that another container may have, too. */
  claimedPorts?(spec: Spec): PortClaimant;
  /**
   * One line for each thing of others that keeps it from working, although it is as it was made. An engine's CHECK does
   * not ask, because the reference plugins' succeeds; `patchbay check` and `plan` do. `repair` puts aside what it can.
   */
  inTheWay?(spec: Spec, host: Host): string[];
  /**
   * One line for each thing of others that stops what goes through it, when everything is made. `inspect` asks. What cannot
   * be told for certain, and soon, is not told.
   */
  stoppedByOthers?(spec: Spec, host: Host, look: HostLook): string[];
  /** What a table of attachments shows: addresses with prefix length, ports as `8080->80/tcp`. */
  gist?(spec: Spec): { addresses?: string[]; ports?: string[] };
  /** The bridge of an internal network: nothing is forwarded from it or to it, on purpose. */
  closes?(spec: Spec): string | undefined;
  /** Where the container asks for names, as far as this resource says so. */
  nameServers?(spec: Spec): NameServer[];
  /** The table of ours that contains it. Foreign plugins do not remove it from there. */
  ownTable?(spec: Spec): string | undefined;
  /** What others' plugins of the same name do not remove: told to users who go back to them. */
  readonly leftByOthers?: string;
  /** What they leave of it changes nothing for anybody, and goes with the boot. */
  readonly isHarmlessWhenLeft?: true;
}

export interface NameServer {
  address: string;
  port: number;
}

/** How a network is removed. */
export interface Retirement {
  readonly network: string;
  /** Nothing is changed, and the list is what would be removed. */
  readonly isDryRun: boolean;
  /** Whether the operator was shown this lease. One that was taken since then stays. */
  mayRelease(what: string): boolean;
  /** The other network with a container whose link is upon this link of the host: the kernel removes both together. */
  networkUpon(link: string): string | undefined;
  /** What kinds before this one have removed, or would remove. */
  readonly before: readonly Retired[];
}

export interface HostSide {
  /** Its other end. While that lives, so does the container. */
  end?: HostEnd;
  /** The link that it is upon. The kernel does not show that to the host. */
  master?: string | undefined;
}

export interface HostEnd {
  name: string;
  mac: string;
  /** The MAC address of the end in the container. */
  farMac: string;
}

/** What a network has left. */
export interface Retired {
  /** `bridge cni0` */
  what: string;
  /** Why it is not removed. */
  staysBecause?: string;
  /** Its name, when it is a link of the host. */
  link?: string;
  /** It is a lease, and this container's if it is a container's. */
  lease?: { containerId?: string };
}

/** A kind whose specification type is unknown, because it was read from a ledger. The only `any` in the code. */
// deno-lint-ignore no-explicit-any
export type AnyKind<Made = any> = KindOf<any, Made>;

/** A specification and its kind: what a plugin passes to the engine. */
export interface Resource<Made = void> {
  readonly kind: AnyKind<Made>;
  readonly spec: unknown;
}

/** Makes the function that plugins call: `masquerade({ … })` for the kind `masqueradeKind`. */
export function resource<Spec, Made>(kind: KindOf<Spec, Made>): (spec: Spec) => Resource<Made> {
  return (spec) => ({ kind, spec });
}
