/** Counting leases with no ADD under way, for whoever takes ranges away. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inStore } from "../../src/ipam/store.ts";
import { leasedExclusively } from "../../src/ipam/taking-away.ts";
import { formatAddress } from "../../src/net/address.ts";
import { StillLocked } from "../../src/process/lock.ts";
import { add, del, endBoot, leaseDirectory, rangeSet } from "../support/lease-directory.ts";

const set = rangeSet("10.1.0.0/24");
const leased = ({ options }: ReturnType<typeof leaseDirectory>, patienceMs?: number) =>
  leasedExclusively(options, (addresses) => addresses.map(formatAddress).sort(), patienceMs);

test("what is leased or reserved by hand; not what a dead process has left, nor what is of the last boot", () => {
  using made = leaseDirectory();
  expect(leased(made)).toEqual([]);
  add(made, set, "c1");
  writeFileSync(join(made.path, "10.1.0.9"), "printer in room 5");
  writeFileSync(join(made.path, "10.1.0.10"), "");
  expect(leased(made)).toEqual(["10.1.0.2", "10.1.0.9"]);
  expect(made.reports).toEqual([`removed ${made.path}/10.1.0.10: it is empty, left by a process that died`]);
  endBoot(made);
  expect(leased(made)).toEqual(["10.1.0.9"]);
  expect(add(made, set, "c1")).toBe("10.1.0.3");
});

test("an address whose file was removed by hand can be given at once", () => {
  using made = leaseDirectory();
  for (let count = 0; count < 253; count++) add(made, set, `c${count}`);
  rmSync(join(made.path, "10.1.0.7"));
  expect(leased(made)).not.toContain("10.1.0.7");
  expect(add(made, set, "late")).toBe("10.1.0.7");
});

test("waits for an ADD that is under way as long as it is told to, and ADD for it", () => {
  using made = leaseDirectory();
  inStore(made.options, undefined, () => expect(() => leased(made, 20)).toThrow(StillLocked));
  leasedExclusively(made.options, () => {
    expect(() => inStore({ ...made.options, patienceMs: 20 }, undefined, () => 0)).toThrow(StillLocked);
    expect(() => leased(made, 20)).toThrow(StillLocked);
  });
  expect(add(made, set, "c1")).toBe("10.1.0.2");
  expect(del(made, "c1")).toBe(1);
});

test("a store that is not to be trusted is an error, and nothing is counted", () => {
  using made = leaseDirectory();
  mkdirSync(join(made.path, ".patchbay", "locks"), { recursive: true });
  let hasRun = false;
  expect(() => leasedExclusively(made.options, () => (hasRun = true))).toThrow(
    "locks is not trusted: it is a directory",
  );
  expect([hasRun, existsSync(made.path)]).toEqual([false, true]);
});
