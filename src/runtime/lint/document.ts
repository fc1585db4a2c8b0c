/**
 * A configuration file with the place of everything in it: JSON with comments and trailing commas, as conf.ts reads it.
 */

/** Offsets into the text. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

export interface Entry {
  readonly key: string;
  readonly at: Place;
  readonly value: Node;
}

/** `value` is what JSON.parse answers; objects and lists also have what they are made of. */
export interface Node extends Place {
  readonly value: unknown;
  readonly entries?: readonly Entry[];
  readonly items?: readonly Node[];
}

/** The text is no document. */
export class SyntaxProblem extends Error {
  constructor(message: string, readonly offset: number) {
    super(message);
  }
}

const DEPTH_LIMIT = 100;

// Each matches at one place. Strings and numbers are those of RFC 8259.
const blank = /(?:[ \t\r\n]+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
// deno-lint-ignore no-control-regex
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const word = /true|false|null/y;

export function parse(text: string): Node {
  let at = 0;

  function skip(): void {
    blank.lastIndex = at;
    blank.test(text);
    at = blank.lastIndex;
  }

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  }

  function fail(expected: string): never {
    const token = /"[^"\n]{0,40}"?|[\w-]+|[^]|$/y.exec(text.slice(at))![0];
    const found = token === "" ? "the end of the file" : token.startsWith('"') ? token : `"${token}"`;
    throw new SyntaxProblem(`${expected} expected, found ${found}`, at);
  }

  function readString(expected: string): string {
    if (text[at] !== '"') fail(expected);
    const found = match(string);
    if (found !== undefined) return JSON.parse(found) as string;
    const newline = /\n|$/g.exec(text.slice(at))!.index;
    const problem = text.slice(at + 1, at + newline).includes('"')
      ? "this text cannot be read"
      : "this text has no end";
    throw new SyntaxProblem(problem, at);
  }

  function readObject(start: number, depth: number): Node {
    const entries: Entry[] = [], value: Record<string, unknown> = Object.create(null);
    at++;
    for (skip(); text[at] !== "}"; skip()) {
      const keyStart = at, key = readString(entries.length === 0 ? 'a key or "}"' : "a key");
      const place = { start: keyStart, end: at };
      skip();
      if (text[at] !== ":") fail('":"');
      at++;
      const found = readValue(depth);
      entries.push({ key, at: place, value: found });
      value[key] = found.value;
      skip();
      if (text[at] === ",") at++;
      else if (text[at] !== "}") fail('"," or "}"');
    }
    at++;
    return { start, end: at, value, entries };
  }

  function readList(start: number, depth: number): Node {
    const items: Node[] = [];
    at++;
    for (skip(); text[at] !== "]"; skip()) {
      items.push(readValue(depth));
      skip();
      if (text[at] === ",") at++;
      else if (text[at] !== "]") fail('"," or "]"');
    }
    at++;
    return { start, end: at, value: items.map(({ value }) => value), items };
  }

  function readValue(depth = 0): Node {
    skip();
    const start = at;
    if (depth > DEPTH_LIMIT) throw new SyntaxProblem(`the document nests deeper than ${DEPTH_LIMIT}`, at);
    if (text[at] === "{") return readObject(start, depth + 1);
    if (text[at] === "[") return readList(start, depth + 1);
    if (text[at] === '"') return { value: readString("a value"), start, end: at };
    const found = match(word) ?? match(number);
    if (found === undefined) fail("a value");
    return { value: JSON.parse(found), start, end: at };
  }

  const document = readValue();
  skip();
  if (at < text.length) fail("the end of the file");
  return document;
}

/** Line and column from 1, as editors count them. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}
