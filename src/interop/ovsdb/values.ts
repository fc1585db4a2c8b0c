/** Values of a database of Open vSwitch as JSON (RFC 7047, section 5.1). Pure. */

export type OvsdbRow = Readonly<Record<string, unknown>>;

export function isRow(value: unknown): value is OvsdbRow {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const uuid = (text: string) => ["uuid", text] as const;
/** The row that an insert of the same transaction makes. */
export const newRow = (name: string) => ["named-uuid", name] as const;
export const ovsdbSet = (items: readonly unknown[]) => ["set", items] as const;
export const ovsdbMap = (entries: Readonly<Record<string, string>>) => ["map", Object.entries(entries)] as const;

/** A set of one is written without its braces. */
export function itemsOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) return value === undefined ? [] : [value];
  return value[0] === "set" && Array.isArray(value[1]) ? value[1] : [value];
}

export function numbersOf(value: unknown): number[] {
  return itemsOf(value).filter((item) => typeof item === "number");
}

/** The text, or the only one of a set. */
export function textIn(value: unknown): string {
  const [item] = itemsOf(value);
  return typeof item === "string" ? item : "";
}

export function uuidsOf(value: unknown): string[] {
  return itemsOf(value).flatMap((item) => Array.isArray(item) && item[0] === "uuid" ? [String(item[1])] : []);
}

export function entriesOf(value: unknown): Readonly<Record<string, string>> {
  const pairs = Array.isArray(value) && value[0] === "map" && Array.isArray(value[1]) ? value[1] : [];
  return Object.fromEntries(pairs.filter(Array.isArray).map(([key, text]) => [String(key), String(text)]));
}
