/** Asking the link whether another host has an address, without anybody learning a wrong one. */
import type { Packet, PacketSocket } from "../../ffi/packet-socket.ts";
import type { Probe } from "../wishes.ts";

/** How many probes, and how long each is waited for, in seconds. */
const thoroughness: Record<Probe, { count: number; pause: number }> = {
  none: { count: 0, pause: 0 },
  fast: { count: 1, pause: 0.05 },
  full: { count: 3, pause: 1.5 },
};

export abstract class Probing {
  private left: number;
  private readonly pause: number;
  /** When `look` is to be called, whether or not something has arrived. */
  due: number;

  constructor(protected readonly socket: PacketSocket, probe: Probe, now: number) {
    ({ count: this.left, pause: this.pause } = thoroughness[probe]);
    this.due = now;
  }

  protected abstract ask(): void;
  /** From another host that has the address, or is about to take it. */
  protected abstract isOfRival(packet: Packet): boolean;

  get fd(): number {
    return this.socket.fd;
  }

  /** "taken", "free", or undefined while it is not known. */
  look(now: number): "taken" | "free" | undefined {
    for (let packet = this.socket.receive(); packet !== undefined; packet = this.socket.receive()) {
      if (this.isOfRival(packet)) return "taken";
    }
    if (now < this.due) return undefined;
    if (this.left-- <= 0) return "free";
    this.ask();
    this.due = now + this.pause;
    return undefined;
  }

  close(): void {
    this.socket.close();
  }
}

export function isAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  return wanted.every((byte, index) => byte === bytes[at + index]);
}
