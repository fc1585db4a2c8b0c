/** Documents are read like JSON.parse, with comments and trailing commas; errors have a line and a column. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  JsonSyntaxError,
  lineAndColumn,
  parseWithPositions,
  withoutExtensions,
} from "../../../src/runtime/conf/positioned-json.ts";
import { thrown } from "../../support/outcome.ts";

test("JSON is parsed as by JSON.parse", () => {
  fc.assert(fc.property(fc.json(), (text) => expect(parseWithPositions(text).value).toEqual(JSON.parse(text))));
});

test("comments and trailing commas are ignored", () => {
  expect(parseWithPositions('// head\n{"a": [1, /* two */ 2,], "b": "//",}').value).toEqual({ a: [1, 2], b: "//" });
});

test("without comments and trailing commas a document is the same, as JSON", () => {
  const space = fc.constantFrom("", " ", "\n", "// one\n", "/* two, ] */", "/**//* three */ // four\n");
  const comma = fc.constantFrom("", ",");
  fc.assert(fc.property(fc.jsonValue(), space, comma, space, (value, before, last, after) => {
    const list = `${before}[${before}${JSON.stringify(value)}${after}${last}${before}]${after}`;
    const text = `{"a" ${after}: ${list}${before}${last}${after}}${before}`;
    expect(JSON.parse(withoutExtensions(text))).toEqual(JSON.parse(JSON.stringify({ a: [value] })));
    const plain = JSON.stringify(value);
    expect(withoutExtensions(plain)).toBe(plain);
  }));
});

test("keys and values have positions", () => {
  const text = '{\n  "a": {"b": 1}\n}';
  const [a] = parseWithPositions(text).entries!;
  expect(text.slice(a!.at.start, a!.at.end)).toBe('"a"');
  const [b] = a!.value.entries!;
  expect(text.slice(b!.value.start, b!.value.end)).toBe("1");
  expect(lineAndColumn(text, b!.at.start)).toEqual({ line: 2, column: 9 });
});

const refused: [text: string, at: string, message: string][] = [
  ["", "1:1", "a value expected, found the end of the file"],
  ['{"a" 1}', "1:6", '":" expected, found "1"'],
  ['{"a": 1\n "b": 2}', "2:2", '"," or "}" expected, found "b"'],
  ['{"a": nul}', "1:7", 'a value expected, found "nul"'],
  ["{a: 1}", "1:2", 'a key or "}" expected, found "a"'],
  ['{"a": "x\n"}', "1:7", "this text has no end"],
  ['{"a": "x\\q"}', "1:7", "this text cannot be read"],
  ['{"a": 01}', "1:8", '"," or "}" expected, found "1"'],
  ["{} x", "1:4", 'the end of the file expected, found "x"'],
  ["[".repeat(1000), "1:102", "the document nests deeper than 100"],
];

for (const [text, at, message] of refused) {
  test(`${JSON.stringify(text.slice(0, 20))}: ${message}`, () => {
    const { offset, message: told } = thrown(() => parseWithPositions(text)) as JsonSyntaxError;
    const { line, column } = lineAndColumn(text, offset);
    expect([`${line}:${column}`, told]).toEqual([at, message]);
  });
}
