/**
 * What plugins restate of an attachment, without a kernel: each resource with its specification, which is also what ledgers
 * say, and the result. stories.txt has it, and write-stories.ts writes it.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { pluginNames } from "../../src/plugins/table.ts";
import { ToldBefore } from "../support/told-before.ts";
import { stories } from "./stories.ts";

const before = new ToldBefore(join(import.meta.dir, "stories.txt"), "\n\n", "test/plugins/write-stories.ts");

test.each(stories.map(({ title, text }) => [title, text] as const))("%s", (title, text) => {
  before.compare(title, text());
});

test("nothing else is expected, and every plugin that makes something here has a story", () => {
  before.expectCount(stories.length);
  const others = ["dhcp", "flannel", "host-local", "patchbay-cluster", "static"];
  const without = pluginNames.filter((name) => !stories.some(({ title }) => title.split(" ")[1] === name));
  expect(without).toEqual(others);
});
