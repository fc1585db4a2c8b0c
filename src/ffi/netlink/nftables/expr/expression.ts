/**
 * What the expressions of rules have in common: a name, and a table of attributes. Each expression has its own file, with
 * the nft text that it stands for.
 */
import type { AnyTable, AttrsOf, AttrTable, Codec, Rows } from "../../attrs.ts";
import { eachAttribute } from "../../wire.ts";
import { NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_LIST_ELEM } from "../../uapi/nf-tables.ts";

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
      writer.nest(NFTA_LIST_ELEM, () => {
        writer.attribute(NFTA_EXPR_NAME, () => void writer.text(name));
        writer.nest(NFTA_EXPR_DATA, () => table.encode(writer, values));
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
    if (type === NFTA_EXPR_NAME) found.name = new TextDecoder().decode(bytes.subarray(0, -1));
    if (type === NFTA_EXPR_DATA) found.data = bytes.slice();
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
