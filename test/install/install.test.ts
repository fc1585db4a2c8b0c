/** `patchbay install` links every plugin name, loses nobody's file, and can be undone. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { pluginNames } from "../../src/plugins/table.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { patchbayIn } from "../support/installing.ts";

let directory: string, bin: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/install-`);
  bin = `${directory}/bin`;
});
afterEach(() => rmSync(directory, { recursive: true }));

const patchbay = (args: string[], program = PATCHBAY, cwd?: string) => patchbayIn(directory, args, program, cwd);

const install = () => patchbay(["install", bin]);
const uninstall = () => patchbay(["install", "--uninstall", bin]);

test("one copy that everybody may run, and a link to it for every plugin", () => {
  expect(install()).toMatchObject({ code: 0, stderr: "" });
  expect(readdirSync(bin).sort()).toEqual(["patchbay", ...pluginNames].sort());
  expect(statSync(`${bin}/patchbay`).mode & 0o7777).toBe(0o755);
  expect(statSync(bin).mode & 0o7777).toBe(0o755);
  expect(readFileSync(`${bin}/patchbay`).equals(readFileSync(PATCHBAY))).toBe(true);
  for (const name of pluginNames) expect(readlinkSync(`${bin}/${name}`)).toBe("patchbay");
  const about = Bun.spawnSync([`${bin}/bridge`], { env: {}, stdout: "pipe", stderr: "pipe" });
  expect(String(about.stderr)).toStartWith("CNI bridge plugin v1.");
});

test("directories below the working directory", () => {
  mkdirSync(bin);
  const here = (...args: string[]) => patchbay(["install", ...args], PATCHBAY, bin);
  expect(here("./plugins", "--bin", "../sbin", "--podman=drivers")).toMatchObject({ code: 0, stderr: "" });
  expect(readlinkSync(`${bin}/plugins/bridge`)).toBe("patchbay");
  for (const name of [`${directory}/sbin/cnitool`, `${bin}/drivers/patchbay`]) {
    expect(readlinkSync(name)).toBe(`${bin}/plugins/patchbay`);
  }
  expect(here("plugins", "--uninstall")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${bin}/plugins/`),
  });
  expect([`${bin}/plugins`, `${directory}/sbin`, `${bin}/drivers`].flatMap((each) => readdirSync(each))).toEqual([]);
});

test("a second time changes nothing, by the same build and by the copy itself", () => {
  install();
  const inodes = () => ["patchbay", ...pluginNames].map((name) => lstatSync(`${bin}/${name}`).ino);
  const before = inodes();
  for (const program of [PATCHBAY, `${bin}/patchbay`]) {
    expect(patchbay(["install", bin], program)).toEqual({ code: 0, stdout: "", stderr: "" });
  }
  expect(inodes()).toEqual(before);
});

test("replaced files are kept, reported, and put back", () => {
  mkdirSync(bin);
  writeFileSync(`${bin}/bridge`, "go bridge");
  chmodSync(`${bin}/bridge`, 0o755);
  symlinkSync("/usr/lib/cni/loopback", `${bin}/loopback`);
  writeFileSync(`${bin}/unrelated`, "x");
  const { code, stdout } = install();
  expect(code).toBe(0);
  expect(stdout).toContain(`${bin}/bridge: installed; what was there is now .patchbay-backup/bridge\n`);
  expect(readlinkSync(`${bin}/bridge`)).toBe("patchbay");
  expect(readFileSync(`${bin}/.patchbay-backup/bridge`, "utf8")).toBe("go bridge");
  // Nomad takes every executable file for a plugin of its name.
  const files = readdirSync(bin, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
  expect(files.map(({ name }) => name).filter((name) => name.includes("backup"))).toEqual([]);
  expect(readlinkSync(`${bin}/.patchbay-backup/loopback`)).toBe("/usr/lib/cni/loopback");
  expect(uninstall().stdout).toContain(`${bin}/bridge: put back what was there before\n`);
  expect(readdirSync(bin).sort()).toEqual(["bridge", "loopback", "unrelated"]);
  expect(readFileSync(`${bin}/bridge`, "utf8")).toBe("go bridge");
  expect(statSync(`${bin}/bridge`).mode & 0o7777).toBe(0o755);
  expect(readlinkSync(`${bin}/loopback`)).toBe("/usr/lib/cni/loopback");
});

test("a plugin that an upgrade put over our link is the one that is kept next time", () => {
  mkdirSync(bin);
  writeFileSync(`${bin}/bridge`, "old");
  install();
  rmSync(`${bin}/bridge`);
  writeFileSync(`${bin}/bridge`, "new");
  install();
  expect(readFileSync(`${bin}/.patchbay-backup/bridge`, "utf8")).toBe("new");
  uninstall();
  expect(readFileSync(`${bin}/bridge`, "utf8")).toBe("new");
});

test("uninstalling leaves a foreign plugin alone, removes names we no longer have, and may be repeated", () => {
  install();
  rmSync(`${bin}/bridge`);
  writeFileSync(`${bin}/bridge`, "foreign");
  symlinkSync("patchbay", `${bin}/from-an-older-version`);
  expect(uninstall().code).toBe(0);
  expect(readdirSync(bin)).toEqual(["bridge"]);
  expect(uninstall()).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("a directory under a plugin's name is refused before anything changes", () => {
  mkdirSync(`${bin}/bridge`, { recursive: true });
  expect(install()).toEqual({
    code: 1,
    stdout: "",
    stderr: `patchbay install: ${bin}/bridge is a directory; move it away\n`,
  });
  expect(readdirSync(bin)).toEqual(["bridge"]);
});

test("a setuid or setgid program is not installed, nor replaced", () => {
  install();
  chmodSync(`${bin}/patchbay`, 0o4755);
  expect(install()).toMatchObject({
    code: 1,
    stderr: `patchbay install: ${bin}/patchbay is setuid or setgid; it must be neither\n`,
  });
  const setgid = `${directory}/setgid`;
  copyFileSync(PATCHBAY, setgid);
  chmodSync(setgid, 0o2755);
  expect(patchbay(["install", `${directory}/other`], setgid).code).not.toBe(0);
  expect(readdirSync(directory).sort()).toEqual(["bin", "setgid"]);
});

test("uninstalling from a directory that is not there says so", () => {
  const nowhere = `${directory}/nowhere`;
  expect(patchbay(["install", "--uninstall", nowhere])).toEqual({
    code: 0,
    stdout: "",
    stderr: `patchbay install: there is no ${nowhere}; nothing is installed there\n`,
  });
});

test("a directory that cannot be written is an error, and leaves nothing", () => {
  writeFileSync(bin, "");
  expect(install()).toMatchObject({ code: 1, stderr: `patchbay install: ${bin} is not a directory\n` });
});

describe("with --podman", () => {
  const drivers = () => `${directory}/netavark`;
  const installDriver = () => patchbay(["install", `--podman=${drivers()}`, bin]);

  test("podman finds a driver, what it replaced is kept, and uninstalling puts that back", () => {
    mkdirSync(drivers());
    writeFileSync(`${drivers()}/patchbay`, "other");
    expect(installDriver()).toMatchObject({ code: 0, stderr: "" });
    expect(readlinkSync(`${drivers()}/patchbay`)).toBe(`${bin}/patchbay`);
    expect(readdirSync(drivers()).sort()).toEqual([".patchbay-backup", "patchbay"]);
    const { code, stdout } = patchbay(["info"], `${drivers()}/patchbay`);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, api_version: "1.0.0" });
    const again = patchbay(["install", `--podman=${drivers()}`, bin], `${bin}/patchbay`);
    expect(again).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(uninstall().code).toBe(0);
    expect(readdirSync(drivers())).toEqual(["patchbay"]);
    expect(readFileSync(`${drivers()}/patchbay`, "utf8")).toBe("other");
  });

  test("with --netavark it finds netavark, until uninstalling", () => {
    const own = `${directory}/podman`;
    expect(patchbay(["install", `--netavark=${own}`, bin])).toMatchObject({ code: 0, stderr: "" });
    expect(patchbay(["--version"], `${own}/netavark`).stdout).toStartWith("netavark 2.");
    expect(uninstall().stdout).toContain(`${own}/netavark: removed`);
    expect(readdirSync(own)).toEqual([]);
  });

  test("without a directory it is podman's own, and the plugin directory is rejected", () => {
    expect(patchbay(["install", "--help"]).stdout).toContain("--podman[=DIR]");
    const local = "/usr/local/libexec/netavark";
    expect(patchbay(["install", "--podman", local]).stderr).toContain(`--podman ${local} is the plugin directory`);
    expect(() => readdirSync(local)).toThrow();
  });
});

describe("with --bin", () => {
  const links = () => `${directory}/sbin`;
  const installBin = () => patchbay(["install", "--bin", links(), bin]);

  test("the runtime is linked under both its names, and uninstalling removes the links", () => {
    expect(installBin().code).toBe(0);
    expect(readdirSync(links()).sort()).toEqual(["cnitool", "patchbay"]);
    for (const name of ["cnitool", "patchbay"]) expect(readlinkSync(`${links()}/${name}`)).toBe(`${bin}/patchbay`);
    expect(patchbay([], `${links()}/cnitool`).stdout).toStartWith("Usage: cnitool COMMAND");
    expect(patchbay(["version"], `${links()}/patchbay`)).toEqual(patchbay(["version"]));
    expect(patchbay(["install", "--bin", links(), bin], `${bin}/patchbay`)).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    expect(uninstall().stdout).toContain(`${links()}/cnitool: removed\n`);
    expect(readdirSync(links())).toEqual([]);
    expect(readdirSync(bin)).toEqual([]);
  });

  test("replaced files are kept, reported, and put back; files that replaced our links stay", () => {
    mkdirSync(links());
    writeFileSync(`${links()}/cnitool`, "go cnitool");
    expect(installBin().stdout).toContain(
      `${links()}/cnitool: installed; what was there is now .patchbay-backup/cnitool\n`,
    );
    expect(readFileSync(`${links()}/.patchbay-backup/cnitool`, "utf8")).toBe("go cnitool");
    rmSync(`${links()}/patchbay`);
    writeFileSync(`${links()}/patchbay`, "somebody's");
    uninstall();
    expect(readdirSync(links()).sort()).toEqual(["cnitool", "patchbay"]);
    expect(readFileSync(`${links()}/cnitool`, "utf8")).toBe("go cnitool");
    expect(readFileSync(`${links()}/patchbay`, "utf8")).toBe("somebody's");
  });

  test("the plugin directory itself is rejected, and so is a directory under one of the names", () => {
    expect(patchbay(["install", "--bin", `${directory}/x/../bin`, bin]).code).toBe(2);
    expect(() => readdirSync(bin)).toThrow();
    mkdirSync(`${links()}/cnitool`, { recursive: true });
    expect(installBin()).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay install: ${links()}/cnitool is a directory; move it away\n`,
    });
    expect([readdirSync(links()), readdirSync(directory)]).toEqual([["cnitool"], ["sbin"]]);
  });
});
