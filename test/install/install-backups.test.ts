/** What `patchbay install` replaces is kept in a directory that nobody else can change, and nothing of it is lost unsaid. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { patchbayIn } from "../support/installing.ts";

let directory: string, bin: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/install-`);
  bin = `${directory}/bin`;
});
afterEach(() => rmSync(directory, { recursive: true }));

const patchbay = (args: string[]) => patchbayIn(directory, args);

const install = () => patchbay(["install", bin]);
const uninstall = () => patchbay(["install", "--uninstall", bin]);

test("that a kept file is replaced is said", () => {
  mkdirSync(bin);
  writeFileSync(`${bin}/bridge`, "old");
  install();
  rmSync(`${bin}/bridge`);
  writeFileSync(`${bin}/bridge`, "new");
  expect(install().stdout).toContain(
    `${bin}/bridge: installed; what was there is now .patchbay-backup/bridge, in place of what was kept before\n`,
  );
});

describe.each(["plugins", "--bin", "--podman"])(
  "a directory that is not trusted with what is kept: of %s",
  (which) => {
    const links = () => which === "plugins" ? bin : `${directory}/links`;
    const backups = () => `${links()}/.patchbay-backup`;
    const name = which === "plugins" ? "bridge" : "patchbay";
    const options = which === "plugins" ? [] : ["links"];
    const installHere = () => patchbay(["install", ...options.map(() => `${which}=${links()}`), bin]);
    const treeOf = (path: string): string[] =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .map((entry) => `${entry.parentPath}/${entry.name} ${lstatSync(`${entry.parentPath}/${entry.name}`).ino}`)
        .sort();

    const kinds: [what: string, make: () => void, says: string][] = [
      ["a link", () => symlinkSync(`${directory}/elsewhere`, backups()), "it is a symbolic link"],
      ["writable by others", () => {
        mkdirSync(backups());
        chmodSync(backups(), 0o777);
      }, "it belongs to uid 0 with mode 0777"],
      ["somebody else's", () => {
        mkdirSync(backups());
        chownSync(backups(), 1000, 1000);
      }, "it belongs to uid 1000"],
      ["a file", () => writeFileSync(backups(), ""), "it is a regular file"],
    ];
    test.each(kinds)("%s: nothing is changed", (_, make, says) => {
      mkdirSync(`${directory}/elsewhere`);
      mkdirSync(links());
      writeFileSync(`${links()}/${name}`, "go");
      make();
      const before = treeOf(directory);
      expect(installHere()).toEqual({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining(`${backups()} is not trusted: ${says}`),
      });
      expect(treeOf(directory)).toEqual(before);
    });

    test.each(kinds)("%s: nothing is put back from it", (_, make, says) => {
      mkdirSync(links());
      writeFileSync(`${links()}/${name}`, "go");
      installHere();
      renameSync(backups(), `${directory}/elsewhere`);
      make();
      const before = treeOf(directory);
      expect(uninstall()).toEqual({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining(`${backups()} is not trusted: ${says}`),
      });
      expect(treeOf(directory)).toEqual(before);
    });

    test("a directory in it: nothing is put back, and nothing installed", () => {
      mkdirSync(links());
      writeFileSync(`${links()}/${name}`, "go");
      installHere();
      mkdirSync(`${backups()}/tuning`);
      const before = treeOf(directory);
      for (const call of [uninstall, installHere]) {
        const stderr = `patchbay install: ${backups()}/tuning is a directory; move it away\n`;
        expect(call()).toEqual({ code: 1, stdout: "", stderr });
        expect(treeOf(directory)).toEqual(before);
      }
    });

    test("on another file system: nothing is changed", async () => {
      await using machine = await openMachine();
      mkdirSync(backups(), { recursive: true });
      writeFileSync(`${links()}/${name}`, "go");
      await machine.sh(`mount -t tmpfs -o mode=755 tmpfs ${backups()}`);
      const before = treeOf(directory);
      const options = which === "plugins" ? [] : [`${which}=${links()}`];
      expect(await machine.run([PATCHBAY, "install", ...options, bin])).toEqual({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining(`${backups()} is on another file system than ${links()}`),
      });
      expect(treeOf(directory)).toEqual(before);
    });

    test("that is empty goes, and one with a file whose name is another's by now is told", () => {
      mkdirSync(links());
      writeFileSync(`${links()}/${name}`, "go");
      installHere();
      rmSync(`${backups()}/${name}`);
      expect(uninstall()).toMatchObject({ code: 0, stdout: expect.not.stringContaining("stays") });
      expect(readdirSync(links())).toEqual([]);

      writeFileSync(`${links()}/${name}`, "go");
      installHere();
      rmSync(`${links()}/${name}`);
      writeFileSync(`${links()}/${name}`, "others'");
      expect(uninstall()).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`${backups()} stays: ${name} was kept in it\n`),
      });
      expect(readFileSync(`${links()}/${name}`, "utf8")).toBe("others'");
      expect(readFileSync(`${backups()}/${name}`, "utf8")).toBe("go");
    });
  },
);
