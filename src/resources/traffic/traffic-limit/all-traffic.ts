/** One limit for everything that a link sends: a tbf qdisc (token bucket) as its root, like the reference plugin's. */
import type { Link } from "../../../ffi/netlink/route/link.ts";
import { readTbf, tbf } from "../../../ffi/netlink/tc/shapers.ts";
import { addQdisc } from "../../../ffi/netlink/tc/queueing.ts";
import { tcHandle, type TcObject } from "../../../ffi/netlink/tc/tc-object.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { bufferTicks, isBufferOf, isQueueOf, type Limit, queueBytes } from "./token-bucket.ts";
import { TC_H_ROOT } from "../../../ffi/netlink/uapi/traffic-control.ts";

export function limitAllTraffic(socket: NetlinkSocket, link: Pick<Link, "index" | "name">, limit: Limit): void {
  const { rate } = limit;
  addQdisc(socket, { link, ...ROOT }, tbf({ rate, limit: queueBytes(limit), buffer: bufferTicks(limit) }));
}

export function verifyAllTraffic(link: Link, limit: Limit, root: TcObject): string[] {
  if (root.kind !== "tbf") return [`Failed to find qdisc: ${link.name} has ${root.kind} where tbf is due`];
  const current = readTbf(root.options);
  const differences: string[] = [];
  const differ = (what: string, present: number, wanted: number) =>
    differences.push(`${what} doesn't match: ${present} on ${link.name}, not ${wanted}`);
  if (current.rate !== limit.rate) differ("Rate", current.rate, limit.rate);
  if (!isQueueOf(limit, current.limit)) differ("Limit", current.limit, queueBytes(limit));
  if (!isBufferOf(limit, current.buffer)) differ("Buffer", current.buffer, bufferTicks(limit));
  return differences;
}

/** Our qdisc is a link's root qdisc. The handle tells it from the kernel's default one. */
export const ROOT = { parent: TC_H_ROOT, handle: tcHandle(1) };
