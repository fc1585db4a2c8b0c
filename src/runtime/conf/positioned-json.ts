/** A parser of JSON with comments and trailing commas that remembers where each key and value stands. */

/** Offsets into the text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface JsonEntry {
  readonly key: string;
  /** The key's own span. */
  readonly at: Span;
  readonly value: JsonNode;
}

/** `value` is what JSON.parse returns. Objects also have `entries`, arrays `items`. */
export interface JsonNode extends Span {
  readonly value: unknown;
  readonly entries?: readonly JsonEntry[];
  readonly items?: readonly JsonNode[];
}

export class JsonSyntaxError extends Error {
  constructor(message: string, readonly offset: number) {
    super(message);
  }
}

const DEPTH_LIMIT = 100;

// Sticky: each matches at `lastIndex` only. Strings and numbers are those of RFC 8259.
const blank = /(?:[ \t\r\n]+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
// deno-lint-ignore no-control-regex
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const word = /true|false|null/y;

/** `onExtension` is told where comments and trailing commas stand, which are no JSON. */
export function parseWithPositions(text: string, onExtension: (at: Span) => void = () => {}): JsonNode {
  return new Reader(text, onExtension).document();
}

/** Each comment and trailing comma becomes a space. From an error on, the text stays as it is, for JSON.parse to refuse. */
export function withoutExtensions(text: string): string {
  const extensions: Span[] = [];
  try {
    parseWithPositions(text, (at) => extensions.push(at));
  } catch {
    // JSON.parse fails at the same place.
  }
  let plain = "", end = 0;
  for (const extension of extensions.sort((one, other) => one.start - other.start)) {
    plain += `${text.slice(end, extension.start)} `;
    end = extension.end;
  }
  return plain + text.slice(end);
}

class Reader {
  #at = 0;

  constructor(readonly text: string, readonly onExtension: (at: Span) => void) {}

  document(): JsonNode {
    const document = this.#value(0);
    this.#skip();
    if (this.#at < this.text.length) this.#fail("the end of the file");
    return document;
  }

  #value(depth: number): JsonNode {
    this.#skip();
    const start = this.#at;
    if (depth > DEPTH_LIMIT) throw new JsonSyntaxError(`the document nests deeper than ${DEPTH_LIMIT}`, start);
    switch (this.text[start]) {
      case "{":
        return this.#object(start, depth + 1);
      case "[":
        return this.#list(start, depth + 1);
      case '"':
        return { value: this.#string("a value"), start, end: this.#at };
    }
    const found = this.#match(word) ?? this.#match(number);
    if (found === undefined) this.#fail("a value");
    return { value: JSON.parse(found), start, end: this.#at };
  }

  #object(start: number, depth: number): JsonNode {
    const entries: JsonEntry[] = [], value: Record<string, unknown> = Object.create(null);
    this.#each("}", () => {
      const keyStart = this.#at, key = this.#string(entries.length === 0 ? 'a key or "}"' : "a key");
      const at = { start: keyStart, end: this.#at };
      this.#skip();
      if (this.text[this.#at] !== ":") this.#fail('":"');
      this.#at++;
      const found = this.#value(depth);
      entries.push({ key, at, value: found });
      value[key] = found.value;
    });
    return { start, end: this.#at, value, entries };
  }

  #list(start: number, depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#each("]", () => void items.push(this.#value(depth)));
    return { start, end: this.#at, value: items.map(({ value }) => value), items };
  }

  /** Reads an object's or array's parts with `read`, from its opening bracket to the end of its closing one. */
  #each(closing: string, read: () => void): void {
    this.#at++;
    for (this.#skip(); this.text[this.#at] !== closing; this.#skip()) {
      read();
      this.#skip();
      if (this.text[this.#at] === ",") this.#comma(closing);
      else if (this.text[this.#at] !== closing) this.#fail(`"," or "${closing}"`);
    }
    this.#at++;
  }

  #string(expected: string): string {
    const start = this.#at;
    if (this.text[start] !== '"') this.#fail(expected);
    const found = this.#match(string);
    if (found !== undefined) return JSON.parse(found) as string;
    const line = /[^\n]*/y.exec(this.text.slice(start + 1))![0];
    throw new JsonSyntaxError(line.includes('"') ? "this text cannot be read" : "this text has no end", start);
  }

  #comma(closing: string): void {
    const comma = this.#at++;
    this.#skip();
    if (this.text[this.#at] === closing) this.onExtension({ start: comma, end: comma + 1 });
  }

  #skip(): void {
    const start = this.#at, comment = this.#match(blank)?.indexOf("/") ?? -1;
    if (comment >= 0) this.onExtension({ start: start + comment, end: this.#at });
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #fail(expected: string): never {
    const token = /"[^"\n]{0,40}"?|[\w-]+|[^]|$/y.exec(this.text.slice(this.#at))![0];
    const found = token === "" ? "the end of the file" : token.startsWith('"') ? token : `"${token}"`;
    throw new JsonSyntaxError(`${expected} expected, found ${found}`, this.#at);
  }
}

/** Line and column from 1, as editors count them. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}
