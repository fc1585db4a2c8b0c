/** What the rest of the program sees of netlink: a socket that sends requests and hands on the kernel's answers. */
import { type BatchError, sendBatch } from "./batch.ts";
import { dumpAll, type NetlinkRequest, sendRequest } from "./exchange.ts";
import { isNetlinkError } from "./netlink-error.ts";
import { openTransport } from "./transport.ts";
import type { NetlinkMessage, Writer } from "./wire.ts";

export { isNetlinkError, NetlinkError } from "./netlink-error.ts";
export { NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_SOCK_DIAG } from "./transport.ts";
export type { NetlinkRequest } from "./exchange.ts";

export interface NetlinkSocket {
  readonly fd: number;
  readonly opened: "libnl" | "raw";
  /** Sends one request and waits for its ACK; `onReply` gets the messages that come before it. */
  request(request: NetlinkRequest, onReply?: (message: NetlinkMessage) => void): void;
  /** Asks for all objects; `onReply` may be called again from the start when the kernel had to interrupt. */
  dump(request: NetlinkRequest, onReply: (message: NetlinkMessage) => void, onRestart?: () => void): void;
  /** Sends a netfilter batch: see `sendBatch`. */
  transact(what: string, write: (writer: Writer, next: () => number) => number): BatchError[];
  /** Set by who deletes nftables objects: the kernel lets the last to close such a socket wait for RCU, 6 to 14 ms. */
  closesSlowly: boolean;
  /** Nothing is left to read. */
  isQuiet(): boolean;
  close(): void;
}

/** What `work` returns, or `instead` when the kernel refuses a request for one of the reasons. */
export function insteadOfRefusal<T>(reasons: readonly number[], instead: T, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isNetlinkError(error, ...reasons)) return instead;
    throw error;
  }
}

/** Sends one request. Returns false when the kernel refuses it for one of the reasons. */
export function tryRequest(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  reasons: readonly number[],
  onReply?: (message: NetlinkMessage) => void,
): boolean {
  return insteadOfRefusal<boolean>(reasons, false, () => {
    socket.request(request, onReply);
    return true;
  });
}

/** Asks for all objects. `read` puts what it makes of each message into the list. */
export function listOf<T>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: NetlinkMessage, found: T[]) => void,
): T[] {
  let found: T[] = [];
  socket.dump(request, (message) => read(message, found), () => void (found = []));
  return found;
}

/** Opens a socket in the namespace the thread is in. It keeps that namespace when the thread leaves. */
export function openNetlink(protocol: number): NetlinkSocket {
  const transport = openTransport(protocol), { fd, opened } = transport;
  return {
    fd,
    opened,
    request: (request, onReply) => sendRequest(transport, request, onReply),
    dump: (request, onReply, onRestart) => dumpAll(transport, request, onReply, onRestart),
    transact: (what, write) => sendBatch(transport, what, write),
    closesSlowly: false,
    close() {
      if (this.closesSlowly) (require("../reaper.ts") as typeof import("../reaper.ts")).holdOpen(fd);
      transport.close();
    },
    isQuiet() {
      try {
        return transport.receive(0) === undefined;
      } catch {
        return false;
      }
    },
  };
}

/** Runs `work` with a socket of its own. */
export function withNetlink<T>(protocol: number, work: (socket: NetlinkSocket) => T): T {
  const socket = openNetlink(protocol);
  try {
    return work(socket);
  } finally {
    socket.close();
  }
}
