/**
 * What the expressions of rules have in common: a name, and a table of attributes. compare.ts, packet-match.ts,
 * action.ts and extension.ts have the expressions, with the nft text that they stand for.
 */
import {
  type AnyTable,
  type AttrsOf,
  type AttrTable,
  attrTable,
  binary,
  type Codec,
  exactText,
  nest,
  type Rows,
  u32be,
} from "../attrs.ts";
import { eachAttribute } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";

export interface Expression {
  name: string;
  table: AnyTable;
  values: Record<string, unknown>;
}

/** An expression of the kernel's, with undecoded attributes. */
export interface FoundExpression {
  name: string;
  data: Uint8Array;
}

/** Makes the function that rules are written with: `payload({ … })`. */
export function expression<R extends Rows>(name: string, table: AttrTable<R>) {
  return (values: AttrsOf<R>): Expression => ({ name, table, values });
}

/** NFTA_RULE_EXPRESSIONS: writes Expressions, reads FoundExpressions. */
export const expressionList: Codec<(Expression | FoundExpression)[]> = {
  nested: true,
  write(writer, list) {
    for (const { name, table, values } of list as Expression[]) {
      writer.nest(nft.NFTA_LIST_ELEM, () => {
        writer.attribute(nft.NFTA_EXPR_NAME, () => void writer.text(name));
        writer.nest(nft.NFTA_EXPR_DATA, () => table.encode(writer, values));
      });
    }
  },
  read(payload) {
    const list: FoundExpression[] = [];
    eachAttribute(payload, (_type, element) => void list.push(readExpression(element)));
    return list;
  },
  nameAt(payload, offset) {
    let at = 0, name: string | undefined;
    eachAttribute(payload, (_type, element) => {
      const end = at + 4 + element.length;
      if (offset >= at && offset < end) name = readExpression(element).name;
      at = (end + 3) & ~3;
    });
    return name;
  },
};

function readExpression(element: Uint8Array): FoundExpression {
  const found = { name: "", data: new Uint8Array(0) };
  eachAttribute(element, (type, bytes) => {
    if (type === nft.NFTA_EXPR_NAME) found.name = new TextDecoder().decode(bytes.subarray(0, -1));
    if (type === nft.NFTA_EXPR_DATA) found.data = bytes.slice();
  });
  return found;
}

/**
 * Whether the kernel's rule is the wanted one. Ignores attributes that the kernel adds, and the numbers that counters
 * have reached.
 */
export function isSameRule(wanted: Expression[], found: FoundExpression[]): boolean {
  return wanted.length === found.length &&
    wanted.every(({ name, table, values }, index) =>
      name === found[index]!.name && (name === "counter" || includes(table.decode(found[index]!.data), values))
    );
}

function includes(found: unknown, wanted: unknown): boolean {
  if (wanted === undefined) return true;
  if (wanted instanceof Uint8Array) return found instanceof Uint8Array && startsWith(found, wanted);
  if (typeof wanted !== "object" || wanted === null) return found === wanted;
  return typeof found === "object" && found !== null &&
    Object.entries(wanted).every(([key, value]) => includes((found as Record<string, unknown>)[key], value));
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  if (bytes.length < start.length) return false;
  for (let at = 0; at < start.length; at++) if (bytes[at] !== start[at]) return false;
  return true;
}

/** A value or a verdict inside an expression or a set element (linux/netfilter/nf_tables.h, enum nft_data_attributes). */
export const verdictAttrs = attrTable("NFTA_VERDICT", {
  code: u32be(nft.NFTA_VERDICT_CODE),
  chain: exactText(nft.NFTA_VERDICT_CHAIN),
});

export const dataAttrs = attrTable("NFTA_DATA", {
  value: binary(nft.NFTA_DATA_VALUE),
  verdict: nest(nft.NFTA_DATA_VERDICT, verdictAttrs),
});

/**
 * The register at a 4-byte offset. There are four of 16 bytes, also addressable as sixteen of 4 bytes (enum
 * nft_registers); those of 16 bytes come under the number that the kernel lists.
 */
export function registerAt(words: number): number {
  const WORDS_EACH = 4;
  return words % WORDS_EACH === 0 ? nft.NFT_REG_1 + words / WORDS_EACH : nft.NFT_REG32_00 + words;
}
