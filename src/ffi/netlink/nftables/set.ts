/**
 * Sets, maps, and their elements: `nft add set`, `nft add element` (linux/netfilter/nf_tables.h, enum nft_set_attributes,
 * nft_set_elem_attributes).
 */
import { attrTable, binary, nest, nestedList, text, u32be, u64be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";
import { utf8 } from "../../libc.ts";
import { comment, commentIn } from "./comment.ts";
import { dataAttrs } from "./expression.ts";
import { get, listObjects, type NftMessage } from "./message.ts";
import { messagesAbout, nameOfTable, type Table } from "./table.ts";

export interface NftSet {
  table: Table;
  name: string;
}

/** A data type of nft(8). The numbers are nft's own; the kernel only stores them for nft's listings. */
export interface KeyType {
  number: number;
  length: number;
  /** The lengths of the parts of a concatenation, for maps of intervals. */
  parts?: readonly number[];
  /** Whether it is in host byte order, which nft has to be told. */
  hostOrder?: boolean;
}

export const protocolKey: KeyType = { number: 12, length: 1 };
export const ipv4Key: KeyType = { number: 7, length: 4 };
export const ipv6Key: KeyType = { number: 8, length: 16 };
export const linkNameKey: KeyType = { number: 41, length: 16, hostOrder: true };
export const linkNamesKey: KeyType = { number: (41 << 6) | 41, length: 32 };
export const linkIndexKey: KeyType = { number: 20, length: 4, hostOrder: true };
export const linkIndexesKey: KeyType = { number: (20 << 6) | 20, length: 8 };
export const markPairKey: KeyType = { number: (19 << 6) | 19, length: 8 };
/** `inet_proto . inet_service` and the like. */
export const protocolAndPortKey: KeyType = { number: (12 << 6) | 13, length: 8, parts: [1, 2] };
export const ipv4ProtocolAndPortKey: KeyType = { number: (7 << 12) | (12 << 6) | 13, length: 12, parts: [4, 1, 2] };
export const ipv6ProtocolAndPortKey: KeyType = { number: (8 << 12) | (12 << 6) | 13, length: 24, parts: [16, 1, 2] };
export const ipv4AndPort: KeyType = { number: (7 << 6) | 13, length: 8 };
export const ipv6AndPort: KeyType = { number: (8 << 6) | 13, length: 20 };
/** `ifname . ether_addr`: six bits a type; each part takes a multiple of four bytes. */
export const linkNameAndMacKey: KeyType = { number: (41 << 6) | 9, length: 24 };

/** A link's name as the kernel compares it: an element's key in a set of `linkNameKey`. */
export function linkNameOf(link: string): Uint8Array {
  const key = new Uint8Array(linkNameKey.length);
  key.set(utf8(link));
  return key;
}

/** An element's key in a set of `linkNamesKey`. */
export function linkNamesOf(input: string, output: string): Uint8Array {
  const key = new Uint8Array(linkNamesKey.length);
  key.set(utf8(input));
  key.set(utf8(output), linkNameKey.length);
  return key;
}

const partAttrs = attrTable("NFTA_SET_FIELD", { length: u32be(nft.NFTA_SET_FIELD_LEN) });

const descriptionAttrs = attrTable("NFTA_SET_DESC", {
  parts: nestedList(nft.NFTA_SET_DESC_CONCAT, nft.NFTA_LIST_ELEM, partAttrs),
});

export const setAttrs = attrTable("NFTA_SET", {
  table: text(nft.NFTA_SET_TABLE),
  name: text(nft.NFTA_SET_NAME),
  flags: u32be(nft.NFTA_SET_FLAGS),
  keyType: u32be(nft.NFTA_SET_KEY_TYPE),
  keyLength: u32be(nft.NFTA_SET_KEY_LEN),
  dataType: u32be(nft.NFTA_SET_DATA_TYPE),
  dataLength: u32be(nft.NFTA_SET_DATA_LEN),
  objectType: u32be(nft.NFTA_SET_OBJ_TYPE),
  description: nest(nft.NFTA_SET_DESC, descriptionAttrs),
  id: u32be(nft.NFTA_SET_ID),
  userdata: binary(nft.NFTA_SET_USERDATA),
});

const elementAttrs = attrTable("NFTA_SET_ELEM", {
  key: nest(nft.NFTA_SET_ELEM_KEY, dataAttrs),
  flags: u32be(nft.NFTA_SET_ELEM_FLAGS),
  expiresMs: u64be(nft.NFTA_SET_ELEM_EXPIRATION),
  keyEnd: nest(nft.NFTA_SET_ELEM_KEY_END, dataAttrs),
  data: nest(nft.NFTA_SET_ELEM_DATA, dataAttrs),
  userdata: binary(nft.NFTA_SET_ELEM_USERDATA),
  object: text(nft.NFTA_SET_ELEM_OBJREF),
});

export const elementListAttrs = attrTable("NFTA_SET_ELEM_LIST", {
  table: text(nft.NFTA_SET_ELEM_LIST_TABLE),
  set: text(nft.NFTA_SET_ELEM_LIST_SET),
  setId: u32be(nft.NFTA_SET_ELEM_LIST_SET_ID),
  elements: nestedList(nft.NFTA_SET_ELEM_LIST_ELEMENTS, nft.NFTA_LIST_ELEM, elementAttrs),
});

export interface Key {
  key: Uint8Array;
  /** The end of the interval, in a map of intervals. */
  keyEnd?: Uint8Array;
}

export interface Element extends Key {
  comment: string;
  /** The value, in a map of values. */
  data?: Uint8Array;
  /** The name of the counter, in a map of counters. */
  counter?: string;
}

const setMessage = messagesAbout("set", setAttrs);

/** libnftnl's NFTNL_UDATA_SET_KEYBYTEORDER with nft's BYTEORDER_HOST_ENDIAN. */
const HOST_ORDER = new Uint8Array([0, 4, 1, 0, 0, 0]);

/** The kernel wants an id for each set of a transaction; we refer to sets by name only. */
let setId = 0;

function create(set: NftSet, key: KeyType, flags: number, rest: object = {}): NftMessage {
  return setMessage("create", nft.NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL, set, {
    flags,
    keyType: key.number,
    keyLength: key.length,
    ...rest,
    id: ++setId,
    userdata: key.hostOrder ? HOST_ORDER : undefined,
  });
}

/** `create set`: fails when it exists. */
export function createSet(set: NftSet, key: KeyType): NftMessage {
  return create(set, key, 0);
}

/** `create map … { type … : counter; }`: fails when it exists. */
export function createCounterMap(set: NftSet, key: KeyType): NftMessage {
  return create(set, key, nft.NFT_SET_OBJECT, { objectType: nft.NFT_OBJECT_COUNTER });
}

/** `create map … { type … : …; }`: fails when it exists. */
export function createMap(set: NftSet, key: KeyType, value: KeyType): NftMessage {
  return create(set, key, nft.NFT_SET_MAP, { dataType: value.number, dataLength: value.length });
}

/** `add map … { type … : …; }`: does nothing when it exists with the same types. */
export function addMap(set: NftSet, key: KeyType, value: KeyType): NftMessage {
  return { ...createMap(set, key, value), flags: NLM_F_CREATE };
}

/** `create map … { type … : …; flags interval; }` for a concatenated key: fails when it exists. */
export function createIntervalMap(set: NftSet, key: KeyType, value: KeyType): NftMessage {
  const parts: { length: number }[] = [];
  for (const length of key.parts!) parts.push({ length });
  return create(set, key, nft.NFT_SET_MAP | nft.NFT_SET_INTERVAL | nft.NFT_SET_CONCAT, {
    dataType: value.number,
    dataLength: value.length,
    description: { parts },
  });
}

/** `{ tcp, udp }` and the like: a set that belongs to the one rule of the same transaction that looks it up by its id. */
export function createRuleSet(
  table: Table,
  key: KeyType,
  keys: readonly Uint8Array[],
): { name: string; id: number; messages: NftMessage[] } {
  const set = { table, name: "__set%d" }, elements: object[] = [];
  for (const each of keys) elements.push(keyValues({ key: each }));
  const created = create(set, key, nft.NFT_SET_ANONYMOUS | nft.NFT_SET_CONSTANT), id = setId;
  const filled = elementMessage("create", nft.NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL, set, elements);
  return { name: set.name, id, messages: [created, { ...filled, values: { ...filled.values, setId: id } }] };
}

/** `delete set`. Fails while a rule uses it. */
export function delSet(set: NftSet): NftMessage {
  return setMessage("delete", nft.NFT_MSG_DELSET, 0, set);
}

/** The names of the table's sets and maps; none when there is no such table. */
export function listSets(socket: NetlinkSocket, table: Table): string[] {
  const question = setMessage("list", nft.NFT_MSG_GETSET, 0, { table, name: "" }, { name: undefined });
  return listObjects(socket, question, (payload, names) => void names.push(setAttrs.decode(payload).name!));
}

function elementMessage(verb: string, type: number, flags: number, set: NftSet, elements?: object[]): NftMessage {
  return {
    what: `${verb} element ${nameOfTable(set.table)} ${set.name}`,
    type,
    flags,
    family: set.table.family,
    table: elementListAttrs,
    values: { table: set.table.name, set: set.name, elements },
  };
}

/** `create element`: fails when the key exists, or an interval overlaps. */
export function createElement(set: NftSet, { comment: text, data, counter, ...key }: Element): NftMessage {
  const userdata = text === "" ? undefined : comment(text);
  const element = { ...keyValues(key), data: data && { value: data }, userdata, object: counter };
  return elementMessage("create", nft.NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL, set, [element]);
}

/** `delete element`: fails when the key does not exist. */
export function delElement(set: NftSet, key: Uint8Array, keyEnd?: Uint8Array): NftMessage {
  return elementMessage("delete", nft.NFT_MSG_DELSETELEM, 0, set, [keyValues({ key, keyEnd })]);
}

/**
 * `get element`: undefined when the key or the set does not exist. In a map of intervals, the interval that contains the
 * key.
 */
export function getElement(socket: NetlinkSocket, set: NftSet, key: Uint8Array): Element | undefined {
  const question = elementMessage("get", nft.NFT_MSG_GETSETELEM, 0, set, [keyValues({ key })]);
  const element = get(socket, question, elementListAttrs)?.elements?.[0];
  return element && found(element);
}

function keyValues({ key, keyEnd }: Key) {
  return { key: { value: key }, keyEnd: keyEnd && { value: keyEnd } };
}

/** Every element; none when the set does not exist. */
export function listElements(socket: NetlinkSocket, set: NftSet): Element[] {
  return listObjects(socket, elementMessage("list", nft.NFT_MSG_GETSETELEM, 0, set), (payload, elements) => {
    elements.push(...(elementListAttrs.decode(payload).elements ?? []).map(found));
  });
}

function found({ key, keyEnd, data, userdata, object }: ReturnType<typeof elementAttrs.decode>): Element {
  return {
    key: key!.value!,
    keyEnd: keyEnd?.value,
    data: data?.value,
    comment: commentIn(userdata),
    counter: object,
  };
}
