/** Lease files have the names and bytes of Go's host-local, and are read and removed as it does. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  createLease,
  findEverywhere,
  leasedAddresses,
  leaseOwnerIn,
  leaseText,
  readCursor,
  readLease,
  removeFound,
  removeLease,
  writeCursor,
} from "../../src/ipam/go-directory.ts";
import { formatAddress, parseAddress } from "../../src/net/address.ts";
import { leaseDirectory } from "../support/lease-directory.ts";

const address = (text: string) => parseAddress(text)!;
const text = leaseText({ containerId: "ctr-0001", ifName: "eth0" });

function directory(files: Record<string, string> = {}) {
  const made = leaseDirectory();
  mkdirSync(made.path);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(made.path, name), content);
  return made;
}

test("createLease() writes the bytes that Go's plugin writes, for root alone to read", () => {
  using made = directory();
  expect(createLease(made.path, address("10.88.0.2"), text, false)).toBe(true);
  expect(readFileSync(join(made.path, "10.88.0.2")).toHex()).toBe("6374722d303030310d0a65746830");
  expect(statSync(join(made.path, "10.88.0.2")).mode & 0o777).toBe(0o600);
});

test("an owner in a directory that networks share has a third line, which is read again", () => {
  const owner = { containerId: "ctr-0001", ifName: "eth0", inNetwork: "net" };
  expect(leaseText(owner)).toBe(`${text}\r\nnet`);
  expect(leaseOwnerIn(leaseText(owner))).toEqual(owner);
});

test("createLease() names IPv6 files as Go does", () => {
  using made = directory();
  createLease(made.path, address("2001:DB8:0::5"), text, true);
  expect(Object.keys(made.files())).toEqual(["2001:db8::5"]);
});

test("createLease() answers false when anything has that name", () => {
  using made = directory({ "10.0.0.1": "", "10.0.0.2": "somebody" });
  mkdirSync(join(made.path, "10.0.0.3"));
  symlinkSync("/nowhere", join(made.path, "10.0.0.4"));
  for (const taken of ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]) {
    expect(createLease(made.path, address(taken), text, false)).toBe(false);
  }
});

test("createLease() throws when the directory is missing, naming the path", () => {
  expect(() => createLease("/nowhere/net", address("10.0.0.1"), text, false)).toThrow(
    "open /nowhere/net/10.0.0.1: no such file or directory",
  );
});

test("readLease() trims as Go does, and follows no links", () => {
  using made = directory({ "10.0.0.1": " \nc1\r\neth0\n\t", "10.0.0.2": "" });
  symlinkSync(join(made.path, "10.0.0.1"), join(made.path, "10.0.0.3"));
  mkdirSync(join(made.path, "10.0.0.4"));
  const read = (name: string) => readLease(made.path, address(name));
  expect(read("10.0.0.1")).toBe("c1\r\neth0");
  expect(read("10.0.0.2")).toBe("");
  expect(leaseOwnerIn(read("10.0.0.3")!)).toBeUndefined();
  expect(leaseOwnerIn(read("10.0.0.4")!)).toBeUndefined();
  expect(read("10.0.0.5")).toBeUndefined();
});

test("readLease() reads no file that is longer than any lease", () => {
  using made = directory({ "10.0.0.1": "x".repeat(65536), "10.0.0.2": "x".repeat(65537) });
  expect(readLease(made.path, address("10.0.0.1"))).toHaveLength(65536);
  expect(readLease(made.path, address("10.0.0.2"))).toBe("?no lease");
});

test.each([
  ["c1\r\neth0", { containerId: "c1", ifName: "eth0" }],
  ["c1", { containerId: "c1", ifName: undefined }],
  ["c1\neth0", undefined],
  ["not a container", undefined],
  ["", undefined],
  ["-c1\r\neth0", undefined],
  ["c1\r\neth0\r\nnet", { containerId: "c1", ifName: "eth0", inNetwork: "net" }],
  ["c1\r\neth0\r\n", undefined],
  ["c1\r\neth0\r\nnet\r\nmore", undefined],
])("leaseOwnerIn(%j)", (content, owner) => expect(leaseOwnerIn(content)).toEqual(owner));

test("removeLease() removes only what says so, and answers what was said", () => {
  using made = directory({ "10.0.0.1": "c1\r\neth0", "10.0.0.2": "c2\r\neth0" });
  expect(removeLease(made.path, address("10.0.0.1"), "c1\r\neth0")).toBe("c1\r\neth0");
  expect(removeLease(made.path, address("10.0.0.2"), "c1\r\neth0")).toBe("c2\r\neth0");
  expect(removeLease(made.path, address("10.0.0.3"), "c1\r\neth0")).toBeUndefined();
  expect(made.files()).toEqual({ "10.0.0.2": "c2\r\neth0" });
});

test("leasedAddresses() knows addresses by the spelling Go uses", () => {
  using made = directory({ "10.0.0.1": "", "fd00::5": "", "FD00::6": "", "10.0.0.01": "", lock: "", notes: "" });
  expect(leasedAddresses(made.path).map(formatAddress).sort()).toEqual(["10.0.0.1", "fd00::5"]);
  expect(leasedAddresses("/nowhere")).toEqual([]);
});

describe("findEverywhere()", () => {
  const files = { "10.0.0.1": "c1", "10.0.0.2": "c2", odd: "c1\n", "last_reserved_ip.0": "c1", ".hidden": "c1" };

  test("finds by content under any name, below too, but not in hidden names and cursors", () => {
    using made = directory(files);
    mkdirSync(join(made.path, "below"));
    writeFileSync(join(made.path, "below", "10.0.0.9"), "c1");
    symlinkSync(made.path, join(made.path, "loop"));
    const found = findEverywhere(made.path, ["c1"], () => false).map(({ path }) => path.slice(made.path.length + 1));
    expect(found.sort()).toEqual(["10.0.0.1", "below/10.0.0.9", "odd"]);
  });

  test("leaves out addresses that are others'", () => {
    using made = directory(files);
    const found = findEverywhere(made.path, ["c1", "c2"], (each) => each[3] === 1);
    expect(found.map(({ text }) => text).sort()).toEqual(["c1", "c2"]);
  });

  test("and what it found is removed only if it still says so", () => {
    using made = directory({ "10.0.0.1": "c1" });
    const [found] = findEverywhere(made.path, ["c1"], () => false);
    writeFileSync(found!.path, "c2");
    expect(removeFound(made.path, found!)).toBe(false);
    writeFileSync(found!.path, "c1");
    expect(removeFound(made.path, found!)).toBe(true);
    expect(removeFound(made.path, found!)).toBe(false);
  });
});

test("the cursor is written without a line end, also over a longer one", () => {
  using made = directory();
  expect(readCursor(made.path, "0")).toBeUndefined();
  writeCursor(made.path, "0", address("10.0.0.254"));
  expect(readCursor(made.path, "0")).toBe("10.0.0.254");
  writeCursor(made.path, "0", address("10.0.0.2"));
  expect(readFileSync(join(made.path, "last_reserved_ip.0"), "utf8")).toBe("10.0.0.2");
});

test("the cursor is not written through a symbolic link", () => {
  using made = directory({ victim: "safe" });
  symlinkSync(join(made.path, "victim"), join(made.path, "last_reserved_ip.0"));
  expect(() => writeCursor(made.path, "0", address("10.0.0.2"))).toThrow(
    "too many levels of symbolic links",
  );
  expect(readFileSync(join(made.path, "victim"), "utf8")).toBe("safe");
});
