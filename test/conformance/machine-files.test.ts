/** The machine's files during a run: what a mistake cannot do, and what root can, as the page and the help text say. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const page = readFileSync(join(root, "docs/conformance.md"), "utf8").replace(/\s+/g, " ");

/** Runs a plugin that does something to a file of the machine's. Returns the file's text afterwards. */
async function after(script: string): Promise<string> {
  await using machine = await openMachine();
  await machine.sh(`mkdir -p /run/files /run/bin; echo before >/run/files/file; mount --bind /run/files /mnt
    printf '%s\\n' '#!/bin/sh' '${script}' 'exit 1' >/run/bin/lonely; chmod +x /run/bin/lonely`);
  const { code } = await machine.run([PATCHBAY, "conformance", "/run/bin"]);
  expect(code).toBe(1);
  return await machine.sh("cat /run/files/file");
}

test.each([
  ["writes", "echo after >/mnt/file"],
  ["removes", "rm -f /mnt/file"],
  ["makes another of the name", "echo after >/mnt/new; mv -f /mnt/new /mnt/file"],
])("a plugin that %s what is not its own changes nothing of the machine's", async (_, script) => {
  expect(await after(script)).toBe("before\n");
});

test("a plugin that mounts the machine's files again can write to them, and nothing promises otherwise", async () => {
  expect(await after("mount -o remount,bind,rw /mnt; echo after >/mnt/file")).toBe("after\n");
  await using machine = await openMachine();
  const help = (await machine.sh(`${PATCHBAY} conformance --help`)).replace(/\s+/g, " ");
  for (const text of [help, page]) {
    expect(text).toContain("from plugins that are wrong, not from hostile ones");
    expect(text).toMatch(/can mount (the machine's )?files again, to write to them/);
    expect(text).not.toContain("can write to none");
  }
});
