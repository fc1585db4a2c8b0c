/** pfifo and bfifo: queues with a limit in packets or bytes (tc-fifo(8)). struct tc_fifo_qopt: limit u32. */
import type { TcKind } from "../tc-header.ts";

export function bfifo(limitBytes: number): TcKind {
  return { name: "bfifo", write: (writer) => void writer.u32(limitBytes) };
}

export function pfifo(limitPackets: number): TcKind {
  return { name: "pfifo", write: (writer) => void writer.u32(limitPackets) };
}
