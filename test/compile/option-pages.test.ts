/** The generated sections of docs/plugins/: every key of a schema is an item, and what people wrote stays around them. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { jsonSchema } from "../../compile/json-schemas.ts";
import { keyList, withSections } from "../../compile/option-pages.ts";

test("an item for each key and each below it", () => {
  const schema = z.object({
    mode: z.enum(["a", "b", ""]).default("a").describe("One | the other."),
    size: z.int().optional().meta({ minimum: 0, maximum: 9, description: "How much." }),
    routes: z.array(z.array(z.object({ dst: z.string().describe("Where to.") }))).optional().describe("Ways."),
    args: z.object({ cni: z.object({ mac: z.string().optional().describe("A MAC.") }).optional() }).optional(),
    either: z.union([z.boolean(), z.record(z.string(), z.string())]).optional().describe("New.").meta({
      since: "9.9",
    }),
  }).meta({ required: ["size"] });
  expect(keyList(jsonSchema(schema)).split("\n")).toEqual([
    '- `mode` (`"a"`, `"b"`; default `"a"`): One | the other.',
    "- `size` (integer, 0 to 9; required): How much.",
    "- `routes` (list of lists of objects): Ways.",
    "- `routes[][].dst` (string; required): Where to.",
    "- `args.cni.mac` (string): A MAC.",
    "- `either` (boolean or object of strings): New. Since 9.9.",
  ]);
});

test("sections take the place of older ones; a new page has them after its head, before what people wrote", () => {
  const written = "# one\n\nHead.\n\n## More\n\nWords.\n";
  const first = withSections(written, ["## Example\n\nA\n", "## Options\n\nB", "## Capabilities\n\nC"]);
  expect(first).toBe(
    "# one\n\nHead.\n\n## Example\n\nA\n\n## Options\n\nB\n\n## Capabilities\n\nC\n\n## More\n\nWords.\n",
  );
  const moved = first.replace("\n## Example", "\n## Before\n\nWords.\n\n## Example");
  expect(withSections(moved, ["## Options\n\nD"])).toBe(
    "# one\n\nHead.\n\n## Before\n\nWords.\n\n## Options\n\nD\n\n## More\n\nWords.\n",
  );
});
