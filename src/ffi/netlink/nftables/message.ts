/**
 * Messages to nf_tables as values (linux/netfilter/nfnetlink.h). Pure functions make them; batch.ts sends changes as
 * transactions, `get` and `listObjects` here send questions.
 */
import type { RulesFamily } from "../../../net/netfilter/ruleset.ts";
import type { AnyTable, AttrsOf, AttrTable, Codec, Rows } from "../attrs.ts";
import { insteadOfRefusal, listOf, type NetlinkSocket, tryRequest } from "../socket.ts";
import type { NetlinkMessage, Writer } from "../wire.ts";
import {
  NFNL_SUBSYS_NFTABLES,
  NFPROTO_BRIDGE,
  NFPROTO_INET,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NFPROTO_NETDEV,
} from "../uapi/nf-tables.ts";
import { EAFNOSUPPORT, EINVAL, ENOENT, EOPNOTSUPP } from "../../errno.ts";

/** struct nfgenmsg: family u8, version u8, resource id u16be. */
export const HEADER_BYTES = 4;

export interface NftMessage {
  /** In the words of nft(8): `add rule ip nat POSTROUTING`. */
  what: string;
  type: number;
  flags: number;
  family: number;
  table: AnyTable;
  values: Record<string, unknown>;
  /** How often a list is asked for while others change it. */
  attempts?: number;
}

export const familyNames: Record<number, RulesFamily | undefined> = {
  [NFPROTO_INET]: "inet",
  [NFPROTO_IPV4]: "ip",
  [NFPROTO_IPV6]: "ip6",
  [NFPROTO_BRIDGE]: "bridge",
  [NFPROTO_NETDEV]: "netdev",
};

export function familyName(family: number): string {
  return familyNames[family] ?? `family ${family}`;
}

export function familyNumber(family: RulesFamily): number {
  return Number(Object.keys(familyNames).find((number) => familyNames[Number(number)] === family));
}

export function messageType(type: number): number {
  return (NFNL_SUBSYS_NFTABLES << 8) | type;
}

/** nf_tables ignores the header's version, and its resource id except at the beginning and end of a batch. */
export function writeBody(writer: Writer, { family, table, values }: NftMessage): void {
  writer.u8(family).u8(0).u16be(0);
  table.encode(writer, values);
}

function request(message: NftMessage) {
  return {
    what: message.what,
    type: messageType(message.type),
    flags: message.flags,
    table: message.table,
    fixedBytes: HEADER_BYTES,
    attempts: message.attempts,
    body: (writer: Writer) => writeBody(writer, message),
  };
}

/** Asks for one object; undefined when it, or something that would contain it, does not exist. */
export function get<R extends Rows>(
  socket: NetlinkSocket,
  message: NftMessage,
  answers: AttrTable<R>,
): AttrsOf<R> | undefined {
  let found: AttrsOf<R> | undefined;
  tryRequest(socket, request(message), ABSENT, ({ payload }) => {
    found = answers.decode(payload.subarray(HEADER_BYTES));
  });
  return found;
}

/** What `read` adds of the payload of every object; nothing when what would contain them does not exist. */
export function listObjects<T>(
  socket: NetlinkSocket,
  message: NftMessage,
  read: (payload: Uint8Array, found: T[], family: number) => void,
): T[] {
  const take = ({ payload }: NetlinkMessage, found: T[]) => read(payload.subarray(HEADER_BYTES), found, payload[0]!);
  return insteadOfRefusal(ABSENT, [], () => listOf<T>(socket, request(message), take));
}

/** The object does not exist, maybe because the kernel lacks nf_tables, or lacks it for the family. */
const ABSENT = [ENOENT, EOPNOTSUPP, EINVAL, EAFNOSUPPORT];

/** For strings that nft sends without the terminating NUL. */
export const plainText: Codec<string> = {
  write: (writer, value) => void writer.raw(new TextEncoder().encode(value)),
  read: (payload) => new TextDecoder().decode(payload[payload.length - 1] === 0 ? payload.subarray(0, -1) : payload),
};
