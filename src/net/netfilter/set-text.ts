/** Elements of sets as nft(8) lists them, for people to see: what is not understood is a number. Pure. */
import { quotedText } from "./foreign-name.ts";
import { byKey } from "./lookup.ts";
import type { SetElement } from "./ruleset.ts";
import { KEY_TYPES, KEYS_IN_HOST_ORDER, shownHex } from "./text-fields.ts";
import { verdictText } from "./text.ts";

export interface SetFacts {
  isMap: boolean;
  /** Its elements are where intervals begin and end. */
  isInterval: boolean;
  /** nft's number of the type of its keys; six bits for each part. */
  keyType: number;
  dataType?: number;
  /** The lengths of a key's parts, without padding, where the kernel knows them. */
  parts: readonly number[];
}

type Shown = (bytes: Uint8Array) => string;

/** `isCut`: elements are left out, so that an interval may lack its end. */
export function elementLines(set: SetFacts, elements: readonly SetElement[], isCut: boolean): string[] {
  const shown = keyShown(set), marks = elements.filter(({ key }) => key !== undefined).sort(byKey);
  const others = elements.filter(({ key }) => key === undefined);
  const keyed = marks.flatMap((mark, at) => {
    const text = set.isInterval ? intervalText(mark, marks[at + 1], shown, isCut) : keyText(mark, shown);
    return text === undefined ? [] : [[text, mark] as const];
  });
  return [...keyed, ...others.map((each) => ["*", each] as const)].map(([text, element]) =>
    text + yielded(set, element) + (element.comment === undefined ? "" : ` comment ${quotedText(element.comment)}`)
  );
}

function keyText({ key, keyEnd }: SetElement, shown: Shown): string {
  const first = shown(key!), last = keyEnd === undefined ? first : shown(keyEnd);
  if (first === last) return first;
  const ends = last.split(" . ");
  return first.split(" . ").map((part, at) => part === ends[at] ? part : `${part}-${ends[at]}`).join(" . ");
}

function intervalText(
  mark: SetElement,
  next: SetElement | undefined,
  shown: Shown,
  isCut: boolean,
): string | undefined {
  if (mark.isEnd || (next === undefined && isCut)) return undefined;
  const first = shown(mark.key!), last = shown(next === undefined ? mark.key!.map(() => 0xff) : before(next.key!));
  return first === last ? first : `${first}-${last}`;
}

/** The number that is one less. */
function before(key: Uint8Array): Uint8Array {
  const less = key.slice();
  for (let at = less.length - 1; at >= 0; at--) if (less[at]!-- !== 0) break;
  return less;
}

function yielded({ isMap, dataType = 0 }: SetFacts, { verdict, data }: SetElement): string {
  if (verdict !== undefined) return ` : ${verdictText(verdict)}`;
  return isMap && data !== undefined ? ` : ${partsShown(typesIn(dataType), [], [])(data)}` : "";
}

function keyShown({ keyType, parts, isInterval }: SetFacts): Shown {
  return partsShown(typesIn(keyType), parts, isInterval ? KEYS_IN_HOST_ORDER : []);
}

function typesIn(number: number): number[] {
  const types: number[] = [];
  for (let rest = number; rest > 0; rest >>>= 6) types.unshift(rest & 63);
  return types;
}

/** Each part takes a multiple of four bytes. */
function partsShown(types: readonly number[], lengths: readonly number[], asNumbers: readonly number[]): Shown {
  return (bytes) => {
    const texts: string[] = [];
    let at = 0;
    for (const [index, type] of types.entries()) {
      const [usual, shown] = KEY_TYPES[type] ?? [], length = usual ?? lengths[index];
      if (length === undefined || at + length > bytes.length) return shownHex(bytes);
      const part = bytes.subarray(at, at + length);
      texts.push(shown === undefined || asNumbers.includes(type) ? shownHex(part) : shown(part));
      at += (length + 3) & ~3;
    }
    return texts.length === 0 ? shownHex(bytes) : texts.join(" . ");
  };
}
