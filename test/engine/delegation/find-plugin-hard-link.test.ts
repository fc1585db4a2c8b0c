/** A hard link to the running program is the plugin of that name. Only root or the program's owner can make one. */
import { expect, test } from "bun:test";
import { linkSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { findPlugin } from "../../../src/engine/delegation/find-plugin.ts";
import { needs } from "../../support/needs.ts";

needs("root");

test("a hard link to the running program is our own plugin", () => {
  const one = mkdtempSync(`${tmpdir()}/one-`);
  const linked = `${process.execPath}.${process.pid}`;
  linkSync(process.execPath, linked);
  try {
    symlinkSync(linked, `${one}/loopback`);
    expect(findPlugin("loopback", one)).toMatchObject({ own: { name: "loopback" } });
  } finally {
    rmSync(linked);
    rmSync(one, { recursive: true });
  }
});
