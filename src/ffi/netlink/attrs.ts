/**
 * Netlink attributes as tables. A row gives an attribute's name, number and wire form; it serves encoding, decoding and
 * naming the attribute that the kernel objects to. Pure.
 *
 * A table can be checked line by line against the kernel header it cites. Attributes are sent in the order of the rows;
 * fields that are undefined are not sent. Decoding skips attributes without a row.
 */
import { eachAttribute, MalformedMessage, NLA_TYPE_MASK, type Writer } from "./wire.ts";

/** How one attribute's payload is written and read. */
export interface Codec<T> {
  readonly nested?: boolean;
  /** The table inside a nest, for `attributeAt`. */
  readonly table?: AnyTable;
  /** Names the attribute at the offset inside a nest that has no table. */
  nameAt?(payload: Uint8Array, offset: number): string | undefined;
  write(writer: Writer, value: T): void;
  read(payload: Uint8Array): T;
}

export interface Row<T> {
  readonly type: number;
  readonly codec: Codec<T>;
}

export type Rows = Record<string, Row<unknown>>;
export type AttrsOf<R extends Rows> = { -readonly [K in keyof R]?: R[K] extends Row<infer T> ? T : never };

export interface AttrTable<R extends Rows> {
  readonly name: string;
  readonly rows: R;
  encode(writer: Writer, values: AttrsOf<R>): void;
  decode(bytes: Uint8Array): AttrsOf<R>;
}

/** A table whose rows do not matter. */
export type AnyTable = AttrTable<Rows>;

export function attrTable<R extends Rows>(name: string, rows: R): AttrTable<R> {
  // By number; made when the first message is decoded, because many tables only encode.
  let byType: (string | undefined)[] | undefined;
  return {
    name,
    rows,
    encode(writer, values) {
      for (const key in rows) {
        const value = values[key];
        if (value === undefined) continue;
        const { type, codec } = rows[key]!;
        const at = codec.nested ? writer.openNest(type) : writer.open(type);
        codec.write(writer, value);
        writer.close(at);
      }
    },
    decode(bytes) {
      if (byType === undefined) {
        byType = [];
        for (const key in rows) byType[rows[key]!.type] = key;
      }
      const values: Record<string, unknown> = {};
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      // `eachAttribute` without its callback: a link has sixty attributes, of which ten have a row.
      let at = 0;
      while (at + 4 <= bytes.length) {
        const length = view.getUint16(at, true);
        if (length < 4 || at + length > bytes.length) {
          throw new MalformedMessage(`attribute length ${length} at ${at}`);
        }
        const key = byType[view.getUint16(at + 2, true) & NLA_TYPE_MASK];
        if (key !== undefined) values[key] = rows[key]!.codec.read(bytes.subarray(at + 4, at + length));
        at += (length + 3) & ~3;
      }
      return values as AttrsOf<R>;
    },
  };
}

function view(payload: Uint8Array, size: number): DataView {
  if (payload.length < size) throw new MalformedMessage(`${payload.length} bytes where ${size} are due`);
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
}

const decoder = new TextDecoder();

const row = <T>(codec: Codec<T>) => (type: number): Row<T> => ({ type, codec });

export const u8 = row<number>({ write: (w, v) => void w.u8(v), read: (p) => view(p, 1).getUint8(0) });
export const u16 = row<number>({ write: (w, v) => void w.u16(v), read: (p) => view(p, 2).getUint16(0, true) });
export const u32 = row<number>({ write: (w, v) => void w.u32(v), read: (p) => view(p, 4).getUint32(0, true) });
export const s32 = row<number>({ write: (w, v) => void w.u32(v >>> 0), read: (p) => view(p, 4).getInt32(0, true) });
export const u16be = row<number>({ write: (w, v) => void w.u16be(v), read: (p) => view(p, 2).getUint16(0, false) });
export const u32be = row<number>({ write: (w, v) => void w.u32be(v), read: (p) => view(p, 4).getUint32(0, false) });
export const u64 = row<bigint>({ write: (w, v) => void w.u64(v), read: (p) => view(p, 8).getBigUint64(0, true) });
export const u64be = row<bigint>({
  write: (w, v) => void w.u64be(v),
  read: (p) => view(p, 8).getBigUint64(0, false),
});
/** An attribute without a payload: its presence is the value. */
export const flag = row<true>({ write: () => {}, read: () => true });
export const binary = row<Uint8Array>({ write: (w, v) => void w.raw(v), read: (p) => p.slice() });
export const text = row<string>({
  write: (w, v) => void w.text(v),
  read: (p) => {
    const end = p.indexOf(0);
    return decoder.decode(end < 0 ? p : p.subarray(0, end));
  },
});

/**
 * For names that are told apart: bytes that are no UTF-8 come as halves of surrogate pairs, so no two names become one. Such
 * a name can be shown, and not sent.
 */
export function exactText(type: number): Row<string> {
  const { codec } = text(type);
  return {
    type,
    codec: {
      write: codec.write,
      read: (p) => {
        const read = codec.read(p);
        if (!read.includes("\ufffd")) return read;
        const bytes = [...p], end = bytes.indexOf(0);
        return String.fromCharCode(
          ...bytes.slice(0, end < 0 ? undefined : end).map((byte) => byte < 0x80 ? byte : 0xdc00 | byte),
        );
      },
    },
  };
}

export function nest<R extends Rows>(type: number, table: AttrTable<R>): Row<AttrsOf<R>> {
  return {
    type,
    codec: { nested: true, table, write: (w, v) => table.encode(w, v), read: (p) => table.decode(p) },
  };
}

/** A nest of elements, each in an attribute of number `elementType`. */
export function nestedList<R extends Rows>(
  type: number,
  elementType: number,
  table: AttrTable<R>,
): Row<AttrsOf<R>[]> {
  return {
    type,
    codec: {
      nested: true,
      table,
      write: (w, values) => {
        for (const value of values) w.nest(elementType, () => table.encode(w, value));
      },
      read: (p) => {
        const values: AttrsOf<R>[] = [];
        eachAttribute(p, (_type, element) => void values.push(table.decode(element)));
        return values;
      },
    },
  };
}

/** For other payloads: a struct, or one whose shape depends on another field. */
export function custom<T>(type: number, codec: Codec<T>): Row<T> {
  return { type, codec };
}

/** The name of the attribute that starts at `offset` bytes into `bytes`: `IFLA linkInfo.data.vlan`. */
export function attributeAt(table: AnyTable, bytes: Uint8Array, offset: number): string | undefined {
  let at = 0;
  let found: string | undefined;
  eachAttribute(bytes, (type, payload) => {
    const end = at + 4 + payload.length;
    if (offset >= at && offset < end) {
      const key = Object.keys(table.rows).find((name) => table.rows[name]!.type === type) ?? `attribute ${type}`;
      const { table: inner, nameAt = inner && attributeAt.bind(null, inner) } = table.rows[key]?.codec ?? {};
      const deeper = offset > at ? nameAt?.(payload, offset - at - 4) : undefined;
      found = deeper === undefined ? key : `${key}.${deeper}`;
    }
    at = (end + 3) & ~3;
  });
  return found;
}
