/** Documents in a stream: where one ends, however it is cut. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Documents } from "../../../src/interop/ovsdb/documents.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("documents that nothing separates, cut anywhere", () => {
  const documents = fc.array(fc.dictionary(fc.string({ unit: "grapheme" }), fc.json()), { maxLength: 5 });
  fc.assert(
    fc.property(documents, fc.array(fc.nat(50)), fc.constantFrom("", " ", "\r\n\t"), (wanted, cuts, between) => {
      const stream = bytes(wanted.map((one) => JSON.stringify(one)).join(between)), reader = new Documents();
      const found: unknown[] = [];
      let at = 0;
      for (const length of [...cuts, stream.length]) found.push(...reader.add(stream.subarray(at, at += length)));
      expect(found).toEqual(JSON.parse(JSON.stringify(wanted)));
    }),
  );
});

test.each(['{"a":"}{\\"}"}', '{"a":{"b":[{}]}}', '{"\\\\":"\\\\"}'])(
  "braces within texts end nothing: %s",
  (text) => {
    expect(new Documents().add(bytes(text + text))).toEqual([JSON.parse(text), JSON.parse(text)]);
  },
);

test.each(["x", '"{}"', "[1]", "{}]", "}", "{nothing}"])("%s is no document", (text) => {
  expect(() => new Documents().add(bytes(text))).toThrow(SyntaxError);
});
