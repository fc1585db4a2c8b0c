/** Allocating and releasing an address in a half-full /16. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allocate } from "../../src/ipam/allocator.ts";
import { releaseAddresses } from "../../src/ipam/claims.ts";
import { planRangeSets } from "../../src/ipam/range.ts";
import { inStore, leaseOf, type StoreOptions } from "../../src/ipam/store.ts";

const conf = [[{ subnet: "10.88.0.0/16" }]];
const [set] = planRangeSets(conf, "1.0.0");
const owner = { containerId: "a".repeat(64), ifName: "eth0" };
const lease = leaseOf(owner);
const request = { set: set!, rangeId: "0", lease, containerId: owner.containerId, requested: undefined };

/** Leases every other address. Called on first use, because loading a benchmark must be fast. */
function makeHalfFull(): StoreOptions {
  const top = mkdtempSync(join(tmpdir(), "patchbay-bench-"));
  process.on("exit", () => rmSync(top, { recursive: true }));
  const directory = join(top, "net");
  mkdirSync(directory);
  for (let index = 2; index < 65_535; index += 2) {
    writeFileSync(join(directory, `10.88.${index >> 8}.${index & 255}`), `${"b".repeat(59)}${index}\r\neth0`);
  }
  return { directory, keep: false, quarantineSeconds: 0, report: console.error };
}

let made: StoreOptions | undefined;

export const tasks = {
  "allocate from and release to a half-full /16": () => {
    const options = made ??= makeHalfFull();
    inStore(options, lease, (store) => allocate(store, request));
    if (releaseAddresses(options, owner, []) !== 1) throw new Error("the lease was not there to release");
  },
  "plan the ranges of a configuration": () => planRangeSets(conf, "1.0.0"),
};
