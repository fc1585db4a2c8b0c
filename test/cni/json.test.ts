/** JSON documents are read as Go's encoding/json reads them, within limits on size and depth. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  asRead,
  DOCUMENT_LIMIT_BYTES,
  DOCUMENT_LIMIT_DEPTH,
  field,
  foldKey,
  parseDocument,
} from "../../src/cni/json.ts";
import { refusal } from "../support/outcome.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

function objection(source: Uint8Array | string): string {
  const [code, message] = refusal(() => parseDocument(source, "reading"));
  expect(code).toBe(6);
  return message;
}

describe("parseDocument()", () => {
  test("reads bytes and text alike", () => {
    expect<unknown>(parseDocument(bytes(' {"name":"ünï"}\n'), "reading")).toEqual({ name: "ünï" });
    expect(parseDocument("[1]", "reading")).toEqual([1]);
  });

  for (const source of ["", " \n"]) {
    test(`says that ${JSON.stringify(source)} ends too early`, () => {
      expect(objection(source)).toBe("reading: unexpected end of JSON input");
    });
  }

  for (
    const source of ["{}{}", '{"a":1} x', '{"a":1,}', "{'a':1}", "\ufeff{}", "{}\0", "// no\n{}", "NaN", '{"a":01}']
  ) {
    test(`refuses ${JSON.stringify(source)}`, () => {
      expect(objection(bytes(source))).toStartWith("reading: ");
    });
  }

  test("bad UTF-8 becomes the replacement character", () => {
    expect(parseDocument(new Uint8Array([0x22, 0xff, 0x22]), "reading")).toBe("\ufffd");
  });

  test("nesting is limited, wherever in the document it is", () => {
    expect(parseDocument(nested(DOCUMENT_LIMIT_DEPTH), "reading")).toBeArray();
    expect(objection(nested(DOCUMENT_LIMIT_DEPTH + 1))).toContain("nests deeper than 100");
    expect(objection(`{"a":1,"b":{"c":${nested(DOCUMENT_LIMIT_DEPTH)}}}`)).toContain("nests deeper than 100");
    expect(objection(nested(1_000_000))).toStartWith("reading: ");
  });

  test("many brackets side by side or in strings are no nesting", () => {
    expect(parseDocument(`[${new Array(500).fill("[]").join()}]`, "reading")).toHaveLength(500);
    expect(parseDocument(JSON.stringify("[".repeat(500)), "reading")).toHaveLength(500);
  });

  test("a document over the size limit is refused before it is parsed", () => {
    expect(objection(new Uint8Array(DOCUMENT_LIMIT_BYTES + 1))).toContain("larger than");
  });

  test("__proto__ is a property like any other and changes no prototype", () => {
    const value = parseDocument('{"__proto__":{"polluted":true}}', "reading") as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(value.polluted).toBeUndefined();
    expect(Object.keys(value)).toEqual(["__proto__"]);
  });
});

test("foldKey() equates what Go's encoding/json equates", () => {
  expect(["hostPort", "HostPort", "HOSTPORT", "ho\u017ftPort"].map(foldKey)).toEqual(new Array(4).fill("hostport"));
  expect(["\u212aey", "key"].map(foldKey)).toEqual(["key", "key"]);
  expect(foldKey("\u0130d")).not.toBe("id");
});

test("field() takes the last spelling of a key that is not null", () => {
  expect(field({ name: 1, NAME: 2, other: 3 }, "name")).toBe(2);
  expect(field({ NAME: 2, name: 1, Name: null }, "name")).toBe(1);
  expect(field({ name: null }, "name")).toBeNull();
  expect(field({}, "constructor")).toBeUndefined();
});

test("asRead() answers what a reader of the printed document finds", () => {
  const scalar = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constantFrom(null, undefined, -0, Infinity));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: "small" }, scalar, fc.array(tie("value")), tie("object")),
    object: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "1", "constructor")), tie("value")),
  }));
  fc.assert(fc.property(fc.dictionary(fc.string(), value), (document) => {
    const read = asRead(document), text = JSON.stringify(document);
    expect(JSON.stringify(read)).toBe(text);
    expect(read).toStrictEqual(JSON.parse(text));
  }));
});
