/** Which lease files DEL searches besides those that the index knows. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { importLeases } from "../../src/ipam/take-over.ts";
import { add, del, indexPath, leaseDirectory, rangeSet } from "../support/lease-directory.ts";

const set = rangeSet("10.1.0.0/29");

test("reads no other file when the index knows the lease, unless Go's plugin has been here and nobody hints", () => {
  using made = leaseDirectory();
  const put = (name: string) => writeFileSync(join(made.path, name), "c1\r\neth0");
  add(made, set, "c1");
  put("odd");
  expect(del(made, "c1")).toBe(1);
  writeFileSync(join(made.path, "lock"), "");
  expect(del(made, "c1", [add(made, set, "c1")])).toBe(1);
  expect(readFileSync(join(made.path, "odd"), "utf8")).toBe("c1\r\neth0");
  add(made, set, "c1");
  expect(del(made, "c1")).toBe(2);
});

test("nor when it knows a lease of the old form, and none names the interface", () => {
  using made = leaseDirectory();
  add(made, set, "other");
  writeFileSync(join(made.path, "10.1.0.4"), "c1");
  importLeases(made.options);
  writeFileSync(join(made.path, "odd"), "c1\r\neth0");
  expect(del(made, "c1")).toBe(1);
  expect(readFileSync(join(made.path, "odd"), "utf8")).toBe("c1\r\neth0");
});

test("nor, when the index does not know the owner, what it knows to be others'", () => {
  using made = leaseDirectory();
  add(made, set, "other");
  for (const name of ["10.1.0.2", "10.1.0.4"]) writeFileSync(join(made.path, name), "c1\r\neth0");
  expect(del(made, "c1")).toBe(1);
  expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
});

test("where Go's plugin has been, finds all that it leased to the same attachment", () => {
  using made = leaseDirectory();
  add(made, set, "c1");
  for (const [name, content] of [["lock", ""], ["10.1.0.5", "c1\r\neth0"]]) {
    writeFileSync(join(made.path, name!), content!);
  }
  expect(del(made, "c1")).toBe(2);
  expect(made.files()).toEqual({});
});

test("where Go's plugin has been, leases of the old form count when none names the interface", () => {
  using made = leaseDirectory();
  add(made, set, "c1");
  for (const [name, content] of [["lock", ""], ["10.1.0.5", "c1"]]) writeFileSync(join(made.path, name!), content!);
  expect(del(made, "c1")).toBe(1);
  expect(made.files()).toEqual({ "10.1.0.5": "c1" });
  expect(del(made, "c1")).toBe(1);
  expect(made.files()).toEqual({});
});

test("finds leases that lie beside each other, and the first address of a block, and frees them in the index", () => {
  using made = leaseDirectory();
  const beside = ["10.1.0.2", "10.1.0.3"].map((only) =>
    rangeSet({ subnet: "10.1.0.0/29", rangeStart: only, rangeEnd: only })
  );
  beside.forEach((each, number) => add(made, each, "c1", { rangeId: `${number}` }));
  add(made, rangeSet("fd00::/64"), "c1", { rangeId: "2", ip: "fd00::1000" });
  expect(del(made, "c1")).toBe(3);
  for (const block of ["10.1.0.0-29", "fd00::1000-116"]) {
    const words = new Int32Array(readFileSync(indexPath(made, block)).buffer, 64);
    expect(words.slice(0, words.length / 2).every((slot) => slot === 0)).toBe(true);
  }
});
