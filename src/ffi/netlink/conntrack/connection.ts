/**
 * Tracked connections: `conntrack -D` (linux/netfilter/nfnetlink_conntrack.h, enum ctattr_type).
 *
 * Since Linux 6.8 the kernel deletes all connections that match a filter. Older kernels reject such a request and delete
 * nothing; then we list all connections and delete the matching ones one by one.
 */
import { AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { isSameBytes } from "../../../net/address.ts";
import { EINVAL, ENOENT } from "../../errno.ts";
import { type AttrsOf, attrTable, binary, type Codec, custom, nest, u16be, u32, u32be, u8 } from "../attrs.ts";
import { isNetlinkError, listOf, type NetlinkSocket, tryRequest } from "../socket.ts";
import type { Writer } from "../wire.ts";
import * as conntrack from "../uapi/nfnetlink-conntrack.ts";

const ipAttrs = attrTable("CTA_IP", {
  source4: binary(conntrack.CTA_IP_V4_SRC),
  destination4: binary(conntrack.CTA_IP_V4_DST),
  source6: binary(conntrack.CTA_IP_V6_SRC),
  destination6: binary(conntrack.CTA_IP_V6_DST),
});

const protocolAttrs = attrTable("CTA_PROTO", {
  number: u8(conntrack.CTA_PROTO_NUM),
  destinationPort: u16be(conntrack.CTA_PROTO_DST_PORT),
});

const tupleAttrs = attrTable("CTA_TUPLE", {
  ip: nest(conntrack.CTA_TUPLE_IP, ipAttrs),
  protocol: nest(conntrack.CTA_TUPLE_PROTO, protocolAttrs),
});

const filterAttrs = attrTable("CTA_FILTER", {
  original: u32(conntrack.CTA_FILTER_ORIG_FLAGS),
  reply: u32(conntrack.CTA_FILTER_REPLY_FLAGS),
});

const requestAttrs = attrTable("CTA", {
  original: nest(conntrack.CTA_TUPLE_ORIG, tupleAttrs),
  reply: nest(conntrack.CTA_TUPLE_REPLY, tupleAttrs),
  status: u32be(conntrack.CTA_STATUS),
  filter: nest(conntrack.CTA_FILTER, filterAttrs),
  statusMask: u32be(conntrack.CTA_STATUS_MASK),
});

/** A tuple as the bytes that the kernel listed, for naming the connection by them. */
const verbatim: Codec<Uint8Array> = {
  nested: true,
  write: (writer, bytes) => void writer.raw(bytes),
  read: (payload) => payload.slice(),
};

const foundAttrs = attrTable("CTA", {
  original: custom(conntrack.CTA_TUPLE_ORIG, verbatim),
  reply: custom(conntrack.CTA_TUPLE_REPLY, verbatim),
  status: u32be(conntrack.CTA_STATUS),
  zone: binary(conntrack.CTA_ZONE),
  id: u32be(conntrack.CTA_ID),
});

/** struct nfgenmsg: family u8, version u8, resource id u16be. */
const HEADER_BYTES = 4;
/** The kernel considers the family only when the version is not 0. */
const LOOK_AT_FAMILY = 1;

/** Connections to a port, optionally to one destination, or answered by one host. */
export interface ConnectionFilter {
  family: 4 | 6;
  protocol: number;
  destinationPort: number;
  destination?: Uint8Array;
  answeredBy?: Uint8Array;
  /** Only connections that the kernel does not consider established (IPS_ASSURED). */
  isUnassured?: boolean;
}

function header(writer: Writer, family: 4 | 6): void {
  writer.u8(family === 4 ? AF_INET : AF_INET6).u8(LOOK_AT_FAMILY).u16be(0);
}

/** Addresses are IPv4's. */
function filterValues({ protocol, destinationPort, destination, answeredBy, isUnassured }: ConnectionFilter) {
  return {
    original: {
      ip: destination && { destination4: destination },
      protocol: { number: protocol, destinationPort },
    },
    reply: answeredBy && { ip: { source4: answeredBy } },
    status: isUnassured ? 0 : undefined,
    statusMask: isUnassured ? conntrack.IPS_ASSURED : undefined,
    filter: {
      original: conntrack.CTA_FILTER_F_PROTO_NUM | conntrack.CTA_FILTER_F_PROTO_DST_PORT |
        (destination ? conntrack.CTA_FILTER_F_IP_DST : 0),
      reply: answeredBy && conntrack.CTA_FILTER_F_IP_SRC,
    },
  };
}

/**
 * Deletes all that match. For an IPv6 address the kernel takes all others (seen on Linux 6.18: ctnetlink_filter_match_tuple
 * has the comparison the wrong way round), so it is not asked for them.
 */
export function deleteConnections(socket: NetlinkSocket, filter: ConnectionFilter): void {
  const { family, destination, answeredBy } = filter;
  if (family === 6 && (destination ?? answeredBy) !== undefined) return deleteByListing(socket, filter);
  try {
    socket.request({
      what: `delete connections to port ${filter.destinationPort}`,
      type: (conntrack.NFNL_SUBSYS_CTNETLINK << 8) | conntrack.IPCTNL_MSG_CT_DELETE,
      table: requestAttrs,
      fixedBytes: HEADER_BYTES,
      body: (writer) => {
        header(writer, filter.family);
        requestAttrs.encode(writer, filterValues(filter));
      },
    });
  } catch (error) {
    if (isNetlinkError(error, ENOENT)) return;
    if (!isNetlinkError(error, EINVAL)) throw error;
    deleteByListing(socket, filter);
  }
}

function deleteByListing(socket: NetlinkSocket, filter: ConnectionFilter): void {
  deleteOneByOne(socket, filter.family, (connection) => fits(connection, filter));
}

interface TrackedConnection {
  original: AttrsOf<typeof tupleAttrs.rows>;
  reply: AttrsOf<typeof tupleAttrs.rows>;
  status: number;
}

/** Lists the connections of the family, and deletes those for which `isDoomed` returns true. */
export function deleteOneByOne(
  socket: NetlinkSocket,
  family: 4 | 6,
  isDoomed: (connection: TrackedConnection) => boolean,
): void {
  const doomed = listOf<AttrsOf<typeof foundAttrs.rows>>(
    socket,
    {
      what: "list connections",
      type: (conntrack.NFNL_SUBSYS_CTNETLINK << 8) | conntrack.IPCTNL_MSG_CT_GET,
      body: (writer) => header(writer, family),
    },
    ({ payload }, found) => {
      const values = foundAttrs.decode(payload.subarray(HEADER_BYTES));
      if (values.original === undefined || values.reply === undefined) return;
      const connection = {
        original: tupleAttrs.decode(values.original),
        reply: tupleAttrs.decode(values.reply),
        status: values.status ?? 0,
      };
      if (isDoomed(connection)) found.push({ ...values, reply: undefined, status: undefined });
    },
  );
  for (const connection of doomed) {
    const request = {
      what: "delete connection",
      type: (conntrack.NFNL_SUBSYS_CTNETLINK << 8) | conntrack.IPCTNL_MSG_CT_DELETE,
      table: foundAttrs,
      fixedBytes: HEADER_BYTES,
      body: (writer: Writer) => {
        header(writer, family);
        foundAttrs.encode(writer, connection);
      },
    };
    // ENOENT: it ended, or was replaced by another one.
    tryRequest(socket, request, [ENOENT]);
  }
}

export function fits(
  { original, reply, status }: TrackedConnection,
  { family, protocol, destinationPort, destination, answeredBy, isUnassured }: ConnectionFilter,
): boolean {
  if (original.protocol?.number !== protocol || original.protocol.destinationPort !== destinationPort) return false;
  if (isUnassured && (status & conntrack.IPS_ASSURED) !== 0) return false;
  if (destination !== undefined && !isSame(destination, original.ip?.[`destination${family}`])) return false;
  return answeredBy === undefined || isSame(answeredBy, reply.ip?.[`source${family}`]);
}

function isSame(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && isSameBytes(a, b);
}
