/** What the kernel refused, and why: struct nlmsgerr and the extended acknowledgement behind it (linux/netlink.h). */
import { errnoText } from "../errno.ts";
import { eachAttribute, HEADER_BYTES, type NetlinkMessage, NLM_F_ACK_TLVS, NLM_F_CAPPED } from "./wire.ts";

const NLMSGERR_ATTR_MSG = 1;
const NLMSGERR_ATTR_OFFS = 2;

/** A request that the kernel refused, with the kernel's own words where it gave any. */
export class NetlinkError extends Error {
  constructor(readonly request: string, readonly errno: number, readonly text = "", readonly attribute = "") {
    const hint = [text, attribute && `attribute ${attribute}`].filter(Boolean).join(", ");
    super(`${request}: ${errnoText(errno)}${hint === "" ? "" : ` (${hint})`}`);
    this.name = "NetlinkError";
  }
}

export function isNetlinkError(error: unknown, ...errnos: number[]): error is NetlinkError {
  return error instanceof NetlinkError && (errnos.length === 0 || errnos.includes(error.errno));
}

/** The number that an NLMSG_ERROR or NLMSG_DONE begins with: 0, or a negative errno. */
export function ackStatus({ payload }: NetlinkMessage): number {
  return payload.length < 4 ? 0 : new DataView(payload.buffer, payload.byteOffset).getInt32(0, true);
}

export interface ExtendedAck {
  text: string;
  /** Where in the request the attribute is that the kernel objects to; 0 when it named none. */
  offset: number;
}

export function extendedAck(message: NetlinkMessage): ExtendedAck {
  let text = "", offset = 0;
  if ((message.flags & NLM_F_ACK_TLVS) !== 0) {
    // struct nlmsgerr: error s32, then the request's header, and its payload unless capped.
    const view = new DataView(message.payload.buffer, message.payload.byteOffset);
    const echoed = (message.flags & NLM_F_CAPPED) !== 0 ? HEADER_BYTES : view.getUint32(4, true);
    eachAttribute(message.payload.subarray(4 + ((echoed + 3) & ~3)), (type, payload) => {
      if (type === NLMSGERR_ATTR_MSG) text = new TextDecoder().decode(payload.subarray(0, -1));
      if (type === NLMSGERR_ATTR_OFFS) offset = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
    });
  }
  return { text, offset };
}
