/** Where a database listens, as Open vSwitch's programs write it (ovsdb(7), "Connection Methods"): `unix:PATH`, `tcp:IP:PORT`. */
import { connectTcp } from "../../ffi/socket/tcp.ts";
import { utf8 } from "../../ffi/libc.ts";
import { connectTo, LONGEST_PATH } from "../../ffi/socket/unix.ts";
import { SOCK_STREAM } from "../../ffi/socket/socket.ts";
import { parseAddress } from "../../net/address.ts";

export const DEFAULT_SERVER = "unix:/var/run/openvswitch/db.sock";

type Server = { path: string } | { address: Uint8Array; port: number };

/** A path by itself is a Unix socket's. Undefined for anything else. */
export function parseServer(text: string): Server | undefined {
  const path = text.startsWith("unix:") ? text.slice("unix:".length) : text;
  if (path.startsWith("/")) return path.includes("\0") || utf8(path).length > LONGEST_PATH ? undefined : { path };
  const [, host, digits] = /^tcp:(\[[0-9a-fA-F:.]+\]|[0-9.]+)(?::([0-9]{1,5}))?$/.exec(text) ?? [];
  const address = host && parseAddress(host.replace(/^\[|\]$/g, "")), port = Number(digits ?? 6640);
  return address && port >= 1 && port <= 65535 ? { address, port } : undefined;
}

export function isLocal(text: string): boolean {
  const server = parseServer(text);
  return server !== undefined && "path" in server;
}

/** Throws SyscallError. */
export function connectToServer(text: string, patienceMs: number): number {
  const server = parseServer(text);
  if (server === undefined) throw new Error(`${JSON.stringify(text)} is no address of a database`);
  if ("path" in server) return connectTo(server.path, patienceMs, SOCK_STREAM, server.path);
  return connectTcp(server, patienceMs, text);
}
