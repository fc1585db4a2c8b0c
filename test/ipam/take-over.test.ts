/** Networks taken over from Go's host-local, given back to it, and removed, in a process of their own. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportLeases, importLeases, listLeases, removeLeaseDirectory } from "../../src/ipam/take-over.ts";
import {
  add,
  endBoot,
  indexPath,
  type LeaseDirectory,
  leaseDirectory,
  rangeSet,
} from "../support/lease-directory.ts";

const set = rangeSet("10.1.0.0/29");

function put(made: LeaseDirectory, files: Record<string, string>): void {
  mkdirSync(made.path, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(made.path, name), content);
}

test("listLeases() names owners as the files do, and nobody where a person wrote", () => {
  using made = leaseDirectory();
  expect(listLeases(made.path)).toEqual([]);
  put(made, { "10.1.0.2": "c1\r\neth0", "10.1.0.3": "printer in room 5", "last_reserved_ip.0": "10.1.0.3" });
  expect(listLeases(made.path).toSorted((one, other) => one.address < other.address ? -1 : 1)).toEqual([
    { address: "10.1.0.2", owner: { containerId: "c1", ifName: "eth0" }, text: "c1\r\neth0" },
    { address: "10.1.0.3", owner: undefined, text: "printer in room 5" },
  ]);
});

test("importLeases() makes the index say what the files say", () => {
  using made = leaseDirectory();
  add(made, set, "c1");
  put(made, { "10.1.0.3": "by-go\r\neth0", "10.1.0.4": "" });
  importLeases(made.options);
  expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0", "10.1.0.3": "by-go\r\neth0" });
  expect(made.reports).toEqual([`removed ${made.path}/10.1.0.4: it is empty, left by a process that died`]);
  expect(() => add(made, set, "by-go")).toThrow("10.1.0.3 has been allocated to by-go");
});

describe("exportLeases()", () => {
  test("leaves the files alone, without the index and what died over them", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    put(made, { "10.1.0.5": "" });
    exportLeases(made.options);
    expect(readdirSync(made.path).sort()).toEqual(["10.1.0.2", "last_reserved_ip.0"]);
  });

  test("leaves no lease of an earlier boot to a program that could not tell", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    endBoot(made);
    exportLeases(made.options);
    expect(readdirSync(made.path)).toEqual(["last_reserved_ip.0"]);
  });
});

describe("removeLeaseDirectory()", () => {
  const all = () => true;
  const ofC1 = { what: "lease 10.1.0.2 of container c1", lease: { containerId: "c1" } };

  test("removes leases, index and directory", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    put(made, { lock: "", "10.1.0.5": "printer in room 5" });
    const retired = removeLeaseDirectory(made.options, { isDryRun: false, mayRelease: all });
    expect(retired.toSorted((one, other) => one.what < other.what ? 1 : -1)).toEqual([
      { what: "lease 10.1.0.5", lease: { containerId: undefined } },
      ofC1,
      { what: `directory ${made.path}`, staysBecause: undefined },
    ]);
    expect(existsSync(made.path)).toBe(false);
  });

  test("says what it would remove, and removes nothing", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    expect(removeLeaseDirectory(made.options, { isDryRun: true, mayRelease: () => false })).toEqual([
      ofC1,
      { what: `directory ${made.path}` },
    ]);
    expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
    expect(existsSync(indexPath(made, "10.1.0.0-29"))).toBe(true);
  });

  test("leaves leases that it may not release, and all that is beside them", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    add(made, set, "c2");
    const mayRelease = (what: string) => what.endsWith("c1");
    expect(removeLeaseDirectory(made.options, { isDryRun: false, mayRelease })).toEqual([
      ofC1,
      { what: `directory ${made.path}`, staysBecause: "lease 10.1.0.3 of container c2 has been taken meanwhile" },
    ]);
    expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
    expect(existsSync(indexPath(made, "10.1.0.0-29"))).toBe(true);
  });

  test("leaves what is not host-local's, and names it", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    put(made, { notes: "mine" });
    expect(removeLeaseDirectory(made.options, { isDryRun: false, mayRelease: all })).toEqual([
      ofC1,
      { what: `directory ${made.path}`, staysBecause: "notes is in it" },
    ]);
    expect(readdirSync(made.path)).toEqual(["notes"]);
  });

  test("has nothing to do without a directory, and does not follow a link to another network's", () => {
    using made = leaseDirectory();
    expect(removeLeaseDirectory(made.options, { isDryRun: false, mayRelease: all })).toEqual([]);
    expect(existsSync(made.path)).toBe(false);
    using other = leaseDirectory();
    add(other, set, "c1");
    symlinkSync(other.path, made.path);
    expect(() => removeLeaseDirectory(made.options, { isDryRun: false, mayRelease: all })).toThrow(
      "is not a directory",
    );
    expect(other.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
  });
});
