/** Whether the kernel can make links of a kind, asked without making one. */
import { EINVAL, EOPNOTSUPP } from "../../errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { addLink } from "./link.ts";

/** The kernel looks for the kind, and loads its module, before it rejects the name. */
export function knowsLinkKind(socket: NetlinkSocket, kind: string): boolean {
  const IMPOSSIBLE = "/";
  try {
    addLink(socket, { ifName: IMPOSSIBLE, kind: { name: kind } });
  } catch (error) {
    if (isNetlinkError(error, EINVAL)) return true;
    if (isNetlinkError(error, EOPNOTSUPP)) return false;
    throw error;
  }
  throw new Error(`the kernel made a link named ${IMPOSSIBLE}`);
}
