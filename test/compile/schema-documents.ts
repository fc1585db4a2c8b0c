/**
 * Documents for a zod schema, right and wrong ones, and what Go's way of reading makes of them: the two things the
 * comparison of zod with the validators compiled from it needs.
 */
import fc from "fast-check";
import type { z } from "zod";
import { foldKey } from "../../src/cni/json.ts";

interface Definition {
  type: string;
  innerType: z.ZodType;
  element: z.ZodType;
  valueType: z.ZodType;
  in: z.ZodType;
  entries: Record<string, string>;
  options: z.ZodType[];
}

const definition = (schema: z.ZodType) => schema._zod.def as unknown as Definition;

function shape(schema: z.ZodType): [key: string, part: z.ZodType][] {
  return Object.entries((schema as z.ZodObject).shape as Record<string, z.ZodType>);
}

/** Texts that are what some key wants, next to texts that nearly are. */
const texts = fc.constantFrom(
  "",
  "x",
  "1500",
  "true",
  "bridge",
  "nftables",
  "10.0.0.0/24",
  "10.0.0.5/24",
  "10.0.0.5",
  "10.0.0.05",
  "10.0.0.5/33",
  "::ffff:10.0.0.5/120",
  "FD00::5/64",
  "fd00::5",
  "fd00::5/129",
  "fe80::1%eth0",
  "00:11:22:33:44:55",
);

const numbers = fc.constantFrom(-1, 0, 1, 2, 4094, 4095, 1500, 0.5, -0.5, 1e21, 2 ** 53);

const anyValue = fc.oneof(
  { weight: 4, arbitrary: texts },
  { weight: 4, arbitrary: numbers },
  fc.boolean(),
  fc.constantFrom(null, [], {}, [null], [{}], { type: "x" }, [1], ["x"]),
  fc.jsonValue({ maxDepth: 2 }),
);

/** A key in some other case, now and then with a letter that Go folds to an ASCII one. */
function spelling(key: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(key) },
    fc.constantFrom(key.toUpperCase(), key.toLowerCase(), key.replace("s", "\u017f"), key.replace("k", "\u212a")),
  );
}

/** Documents that mostly fit the schema: each part is replaced by something else now and then. */
export function documents(schema: z.ZodType): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 40, arbitrary: fitting(schema) }, { weight: 1, arbitrary: anyValue });
}

function fitting(schema: z.ZodType): fc.Arbitrary<unknown> {
  const inner = definition(schema);
  switch (inner.type) {
    case "optional":
    case "default":
      return fc.oneof({ weight: 9, arbitrary: documents(inner.innerType) }, fc.constant(null));
    case "pipe":
      return fitting(inner.in);
    case "string": {
      const examples = schema.meta()?.["examples"] as string[] | undefined;
      return examples ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...examples) }, texts) : texts;
    }
    case "number":
      return numbers;
    case "boolean":
      return fc.boolean();
    case "enum":
      return fc.constantFrom(...Object.values(inner.entries));
    case "union":
      return fc.oneof(...inner.options.map(documents));
    case "unknown":
      return anyValue;
    case "array":
      return fc.array(documents(inner.element), { maxLength: 3 });
    case "record":
      return fc.dictionary(fc.constantFrom("a", "A", "mac", "toString"), documents(inner.valueType), { maxKeys: 2 });
    case "object": {
      const members = shape(schema).map(([key, part]) => fc.tuple(spelling(key), documents(part)));
      const unknown = fc.tuple(fc.constantFrom("x", "constructor", "hasOwnProperty"), anyValue);
      return fc.tuple(
        fc.shuffledSubarray([...members, unknown]),
        fc.subarray(members, { maxLength: Math.min(2, members.length) }),
      )
        .chain(([some, again]) => fc.tuple(...some, ...again))
        .map((pairs) => Object.fromEntries(pairs));
    }
  }
  throw new Error(`no documents for zod's ${inner.type}`);
}

/** The document with known keys in their own spelling and without nulls: what zod, knowing neither rule, is to judge. */
export function asGoReads(schema: z.ZodType, value: unknown): unknown {
  const inner = definition(schema);
  const isPlain = typeof value === "object" && value !== null && !Array.isArray(value);
  switch (inner.type) {
    case "optional":
    case "default":
      return asGoReads(inner.innerType, value);
    case "array":
      return Array.isArray(value) ? value.map((item) => asGoReads(inner.element, item)) : value;
    case "record": {
      if (!isPlain) return value;
      const kept = Object.entries(value).filter(([, part]) => part !== null);
      return Object.fromEntries(kept.map(([key, part]) => [key, asGoReads(inner.valueType, part)]));
    }
    case "object": {
      if (!isPlain) return value;
      const known = new Map(shape(schema).map(([key, part]) => [foldKey(key), { key, part }]));
      const read: Record<string, unknown> = {};
      for (const [name, part] of Object.entries(value)) {
        const found = known.get(foldKey(name));
        if (found === undefined || part === null) continue;
        // Every spelling is read, so each must be right; what counts is the last one.
        const earlier = read[found.key];
        if (earlier !== undefined && !found.part.safeParse(earlier).success) continue;
        read[found.key] = asGoReads(found.part, part);
      }
      return read;
    }
  }
  return value;
}
