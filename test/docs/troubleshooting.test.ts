/** docs/troubleshooting.md quotes messages that the program has: all parts of each stand in one file of the sources. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryFiles, root } from "../support/documents.ts";

const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
const sources = repositoryFiles().filter((path) => /^src\/.*\.ts$/.test(path) && !path.endsWith(".gen.ts"))
  // That one looks for messages, and prints others.
  .filter((path) => path !== "src/frontends/answers/next-steps.ts")
  .map((path) => textsOf(readFileSync(join(root, path), "utf8")));

/** A source without its comments, with texts that go on in the next line in one piece. */
function textsOf(source: string): string {
  return source.replace(/^\s*(?:\/?\*|\/\/).*$/gm, "").replace(/["`] \+\s+["`]/g, "").replaceAll('\\"', '"');
}

function isInOneFile(message: string): boolean {
  const parts = message.split("…").map((part) => part.trim()).filter((part) => part.length > 1);
  const inOrder = new RegExp(parts.map((part) => RegExp.escape(part)).join("[^]{0,200}?"));
  return parts.join("").length > 10 && sources.some((source) => inOrder.test(source));
}

test("every message that the page quotes is one of the program", () => {
  // What stands behind commands is what they print; troubleshooting-commands.test.ts runs them.
  const quotes = page.split(/^##+ /m).map((section) => section.split("```sh\n")[0]!).join("");
  const messages = [...quotes.matchAll(/^```text\n([^]*?)^```$/gm)].flatMap(([, block]) => block!.trim().split("\n"));
  expect(messages.length).toBeGreaterThan(20);
  expect(messages.filter((message) => !isInOneFile(message))).toEqual([]);
});

test("a message that no file has is noticed", () => {
  expect(isInOneFile("no IP addresses are left in range set: …")).toBe(false);
  expect(isInOneFile("no net configuration with name … is taken by …")).toBe(false);
});
