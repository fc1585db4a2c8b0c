/** Listing directories that others remove meanwhile. */
import { closeSync, mkdtempSync, openSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { listDirectory } from "../../src/ffi/files.ts";

test("a directory that is removed after it was opened has no names", () => {
  const directory = mkdtempSync(join(tmpdir(), "files-"));
  const fd = openSync(directory, "r");
  rmdirSync(directory);
  expect(listDirectory(`/proc/self/fd/${fd}`)).toEqual([]);
  closeSync(fd);
  expect(listDirectory(directory)).toEqual([]);
});
