/**
 * What plugins restate of an attachment, without a kernel: each resource with its specification, which is also what ledgers
 * say, and the result. stories.txt has it; `npx bun test/plugins/write-stories.ts` writes it again, and the difference is
 * the change.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pluginNames } from "../../src/plugins/table.ts";
import { stories } from "./stories.ts";

const expected = readFileSync(join(import.meta.dir, "stories.txt"), "utf8").trimEnd().split("\n\n");

test.each(stories.map(({ title, text }) => [title, text] as const))("%s", (title, text) => {
  expect(text()).toBe(expected.find((each) => each.startsWith(`${title}\n`))!);
});

test("nothing else is expected, and every plugin that makes something here has a story", () => {
  expect(expected).toHaveLength(stories.length);
  const others = ["dhcp", "flannel", "host-local", "static"];
  const without = pluginNames.filter((name) => !stories.some(({ title }) => title.split(" ")[1] === name));
  expect(without).toEqual(others);
});
