/** Between the service and those who ask it: a front takes what they say, the desk does it. */
import type { Answer, Order } from "../order.ts";
import type { Attachment } from "./attachment.ts";
import type { Flags } from "./flags.ts";

export interface Asker {
  answer(answer: Answer): void;
  /** Called when the asker goes away before it has an answer. */
  onGone: (() => void) | undefined;
}

export type Serve = (order: Order, asker: Asker, netns: number | undefined) => void;

export interface Desk {
  /** `netns`: an open descriptor of the container's namespace, which is closed afterwards. */
  serve: Serve;
  /** All that are held or being asked for. */
  attachments(): Iterable<Attachment>;
}

export interface Front {
  /** To be woken when one of them can be read, and at `due`. */
  readonly fds: readonly number[];
  readonly due: number;
  wake(ready: ReadonlySet<number>, now: number): void;
  /** A lease was obtained or renewed, or is gone. */
  leasesChanged?(): void;
  /** Nobody needs the service any more. */
  readonly isOver?: boolean;
}

export interface ServiceSettings
  extends Pick<Flags, "hostPrefix" | "broadcast" | "timeout" | "longestPause" | "patience"> {
  /** Whether links of the service's own namespace may have leases. */
  servesOwnNamespace?: boolean;
}

/** How long to wait between messages while somebody waits, in seconds; undefined for the usual pauses. */
export function pausesOf({ timeout, longestPause }: ServiceSettings): number[] | undefined {
  if (timeout === undefined && longestPause === undefined) return undefined;
  const first = timeout ?? 1;
  return [1, 2, 4, 8, 16].map((factor) => Math.min(first * factor, longestPause ?? Infinity));
}
