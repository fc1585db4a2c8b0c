/** One limit for all that leaves through a link: a token bucket at its root, as the reference plugin makes it. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { readTbf, tbf } from "../../ffi/netlink/tc/kinds/tbf.ts";
import { addQdisc } from "../../ffi/netlink/tc/qdisc.ts";
import type { TcObject } from "../../ffi/netlink/tc/tc-header.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { bufferTicks, isBufferOf, isQueueOf, type Limit, queueBytes } from "./token-bucket.ts";
import { ROOT } from "./root.ts";

export function apply(socket: NetlinkSocket, link: Pick<Link, "index" | "name">, limit: Limit): void {
  const { rate } = limit;
  addQdisc(socket, { link, ...ROOT }, tbf({ rate, limit: queueBytes(limit), buffer: bufferTicks(limit) }));
}

export function verify(link: Link, limit: Limit, root: TcObject): string[] {
  if (root.kind !== "tbf") return [`Failed to find qdisc: ${link.name} has ${root.kind} where tbf is due`];
  const is = readTbf(root.options);
  const differences: string[] = [];
  const differ = (what: string, present: number, wanted: number) =>
    differences.push(`${what} doesn't match: ${present} on ${link.name}, not ${wanted}`);
  if (is.rate !== limit.rate) differ("Rate", is.rate, limit.rate);
  if (!isQueueOf(limit, is.limit)) differ("Limit", is.limit, queueBytes(limit));
  if (!isBufferOf(limit, is.buffer)) differ("Buffer", is.buffer, bufferTicks(limit));
  return differences;
}
