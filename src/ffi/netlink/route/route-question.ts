/** How the kernel would send or receive one packet: `ip route get … from … iif … mark … dport … fibmatch`. */
import { formatAddress } from "../../../net/address.ts";
import { attrTable, binary, u16be, u32, u8 } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import * as rtnetlink from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";
import { type KernelRoute, readRoute, ROUTE_HEADER_BYTES } from "./route.ts";

export interface RouteQuestion {
  destination: Uint8Array;
  source?: Uint8Array;
  /** The packet comes in by this link: the kernel judges it as it does a packet that it has received. */
  inputLink?: number;
  mark?: number;
  protocol?: number;
  sourcePort?: number;
  destinationPort?: number;
}

/** `errno`: the kernel would not take the packet, or has no way for it. */
export type RouteAnswer = KernelRoute | { errno: number };

const questionAttrs = attrTable("RTA", {
  destination: binary(rtnetlink.RTA_DST),
  source: binary(rtnetlink.RTA_SRC),
  inputLink: u32(rtnetlink.RTA_IIF),
  outputLink: u32(rtnetlink.RTA_OIF),
  mark: u32(rtnetlink.RTA_MARK),
  protocol: u8(rtnetlink.RTA_IP_PROTO),
  sourcePort: u16be(rtnetlink.RTA_SPORT),
  destinationPort: u16be(rtnetlink.RTA_DPORT),
});

/** The address with which the kernel sends by the link, when a program has chosen none; undefined where it would not send. */
export function askSource(
  socket: NetlinkSocket,
  destination: Uint8Array,
  outputLink: number,
): Uint8Array | undefined {
  let source: Uint8Array | undefined;
  try {
    request(socket, { destination, outputLink }, 0, (payload) => source = readRoute(payload).preferredSource);
  } catch (error) {
    if (!isNetlinkError(error)) throw error;
  }
  return source;
}

/** The route itself, with all of its next hops. */
export function askRoute(socket: NetlinkSocket, question: RouteQuestion): RouteAnswer {
  let route: KernelRoute | undefined;
  try {
    request(socket, question, rtnetlink.RTM_F_FIB_MATCH, (payload) => route = readRoute(payload));
  } catch (error) {
    if (isNetlinkError(error)) return { errno: error.errno };
    throw error;
  }
  return route!;
}

function request(
  socket: NetlinkSocket,
  question: RouteQuestion & { outputLink?: number },
  flags: number,
  take: (payload: Uint8Array) => void,
): void {
  const { destination, source } = question;
  socket.request({
    what: `RTM_GETROUTE ${formatAddress(destination)}`,
    type: rtnetlink.RTM_GETROUTE,
    table: questionAttrs,
    fixedBytes: ROUTE_HEADER_BYTES,
    body: (writer) => {
      const bits = destination.length * 8;
      writer.u8(familyOf(destination)).u8(bits).u8(source === undefined ? 0 : bits).u8(0).u32(0).u32(flags);
      questionAttrs.encode(writer, { ...question, mark: question.mark || undefined });
    },
  }, ({ payload }) => take(payload));
}
