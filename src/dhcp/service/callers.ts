/** Who is connected to a socket of the service. None of them can keep it waiting. */
import { errorText } from "../../cni/error.ts";
import { closeFile } from "../../ffi/files.ts";
import { acceptNext } from "../../ffi/socket/unix.ts";
import { type Refusal, whyRefused } from "./admission.ts";
import { say, sayRarely } from "./log.ts";

/** Until the next attempt to take somebody on, when the process or the host has no descriptor left. */
const PAUSE_S = 1;
/** Of those who connect. Who is refused leaves room for the next one, so without a limit they could go on for ever. */
const MOST_AT_ONCE = 16;

export interface Connection {
  /** When it is closed, whether or not something has arrived. */
  readonly due: number;
  readonly isClosed: boolean;
  /** Something has arrived, or the other end is closed. */
  read(now: number): void;
  close(): void;
}

/** Makes a connection, which calls `forget` before it closes its descriptor: the next one that is opened may be the same. */
export type Open = (fd: number, now: number, forget: () => void) => Connection;
/** Tells somebody why; the connection is closed afterwards. */
export type Refuse = (fd: number, refusal: Refusal) => void;

export class Callers {
  private readonly connected = new Map<number, Connection>();
  private pausedUntil = -Infinity;
  /** Accepted, but there was no room to look at who it is. */
  private unknown: number | undefined;

  /** At most `most` at a time; the others wait in the kernel. */
  constructor(
    private readonly listening: number,
    private readonly most: number,
    private readonly open: Open,
    private readonly refuse: Refuse,
  ) {}

  get areConnected(): boolean {
    return this.connected.size > 0;
  }

  get fds(): number[] {
    const takesMore = this.connected.size < this.most && this.pausedUntil === -Infinity;
    return takesMore ? [this.listening, ...this.connected.keys()] : [...this.connected.keys()];
  }

  get due(): number {
    let due = this.pausedUntil === -Infinity ? Infinity : this.pausedUntil;
    for (const one of this.connected.values()) due = Math.min(due, one.due);
    return due;
  }

  wake(ready: ReadonlySet<number>, now: number): void {
    for (const [fd, connection] of [...this.connected]) {
      // What one asks may have been the end of another.
      if (connection.isClosed) continue;
      try {
        if (ready.has(fd)) connection.read(now);
      } catch (error) {
        say(`while somebody was served: ${error instanceof Error ? error.stack : error}`);
        connection.close();
      }
      if (now >= connection.due) connection.close();
    }
    if (now >= this.pausedUntil) this.pausedUntil = -Infinity;
    const isWaiting = this.unknown !== undefined && this.pausedUntil === -Infinity;
    if (isWaiting || ready.has(this.listening)) this.accept(now);
  }

  private accept(now: number): void {
    try {
      for (let taken = 0; taken < MOST_AT_ONCE && this.connected.size < this.most; taken++) {
        if (!this.acceptNext(now)) return;
      }
    } catch (error) {
      sayRarely("accept", `nobody new is served for a moment: ${errorText(error)}`);
      this.pausedUntil = now + PAUSE_S;
    }
  }

  /** Returns false when nobody has connected. Throws SyscallError when there is no room for another one. */
  private acceptNext(now: number): boolean {
    const fd = this.unknown ??= acceptNext(this.listening);
    if (fd === undefined) return false;
    const refusal = whyRefused(fd);
    this.unknown = undefined;
    if (refusal === undefined) {
      this.connected.set(fd, this.open(fd, now, () => this.connected.delete(fd)));
    } else {
      this.refuse(fd, refusal);
      closeFile(fd);
    }
    return true;
  }
}
