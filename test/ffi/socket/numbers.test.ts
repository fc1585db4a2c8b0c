/** The launcher, which is C, has the numbers that the rest of the program has. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const sources = join(import.meta.dir, "../../../src");

/** What is said in a form of `NAME = 1` or `NAME: 0o10`. */
function numbersIn(file: string, form: RegExp): Map<string, number> {
  const text = readFileSync(join(sources, file), "utf8");
  return new Map(
    [...text.matchAll(form)].map(([, name, number]) => [name!, Number(number!.replace(/^0(?=\d)/, "0o"))]),
  );
}

const launcher = "native/launch.h";

test("the launcher's numbers of sockets are those of src/ffi/socket/socket.ts", () => {
  const ours = numbersIn("ffi/socket/socket.ts", /\b([A-Z]+_[A-Z_]+)(?: =|:) (0?o?x?[0-9a-f]+)/g);
  const launchers = numbersIn(launcher, /\b((?:AF|SOCK|SOL|SO|SCM|MSG)_\w+)_ = (0?x?[0-9a-f]+)/g);
  expect(launchers.size).toBe(8);
  for (const [name, number] of launchers) expect([name, ours.get(name)]).toEqual([name, number]);
});
