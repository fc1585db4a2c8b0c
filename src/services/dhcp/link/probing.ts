/** Asking the link whether another host has an address, without anybody learning a wrong one. */
import type { PacketSocket } from "../../../ffi/socket/packet.ts";
import type { Probe } from "../lease-options.ts";

/** How many probes, and how long each is waited for, in seconds. */
const thoroughness: Record<Probe, { count: number; pause: number }> = {
  none: { count: 0, pause: 0 },
  fast: { count: 1, pause: 0.05 },
  full: { count: 3, pause: 1.5 },
};

export class Probing {
  private left: number;
  private readonly pause: number;
  /** When `look` is to be called, whether or not something has arrived. */
  due: number;

  /** `socket`: it receives nothing but what says that another host has the address, or is about to take it. */
  constructor(
    private readonly socket: PacketSocket,
    private readonly question: { to: Uint8Array; bytes: Uint8Array },
    probe: Probe,
    now: number,
  ) {
    ({ count: this.left, pause: this.pause } = thoroughness[probe]);
    this.due = now;
  }

  get fd(): number {
    return this.socket.fd;
  }

  /** "taken", "free", or undefined while it is not known. */
  look(now: number): "taken" | "free" | undefined {
    if (this.socket.receive() !== undefined) return "taken";
    if (now < this.due) return undefined;
    if (this.left-- <= 0) return "free";
    this.socket.send(this.question.to, this.question.bytes);
    this.due = now + this.pause;
    return undefined;
  }

  close(): void {
    this.socket.close();
  }
}
