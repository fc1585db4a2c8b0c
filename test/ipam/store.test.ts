/** Several processes work on a network: who waits for whom, and where the next search begins. */
import { describe, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tryLockRangeExclusive, unlockRange } from "../../src/process/lock.ts";
import { allocate } from "../../src/ipam/allocator.ts";
import { atCursor, exclusively, inStore, leaseOf } from "../../src/ipam/store.ts";
import { formatAddress } from "../../src/net/address.ts";
import { add, type LeaseDirectory, leaseDirectory, rangeSet } from "../support/lease-directory.ts";
import type { Steps } from "../support/lease-worker.ts";
import { patienceMs } from "../support/patience.ts";

const TIMEOUT_MS = 300_000;
const one = "10.1.0.0/29", both = [one, "10.2.0.0/29"];
const candidates = (subnets: readonly string[]) =>
  subnets.flatMap((subnet) => [2, 3, 4, 5, 6].map((last) => subnet.replace("0/29", String(last))));

describe("the cursor does not go back when another process was faster", () => {
  const cases: [
    what: string,
    subnets: readonly string[],
    last: string | undefined,
    ours: string,
    theirs: string,
    left: string,
  ][] = [
    ["theirs is later", [one], "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.5"],
    ["ours is later", [one], "10.1.0.3", "10.1.0.5", "10.1.0.4", "10.1.0.5"],
    ["theirs is behind the end", [one], "10.1.0.5", "10.1.0.6", "10.1.0.2", "10.1.0.2"],
    ["ours is behind the end", [one], "10.1.0.5", "10.1.0.2", "10.1.0.6", "10.1.0.2"],
    ["both are behind the end", [one], "10.1.0.5", "10.1.0.3", "10.1.0.2", "10.1.0.3"],
    ["theirs is all the way round", [one], "10.1.0.5", "10.1.0.6", "10.1.0.5", "10.1.0.6"],
    ["ours is all the way round", [one], "10.1.0.5", "10.1.0.5", "10.1.0.6", "10.1.0.5"],
    ["theirs is in the next range", both, "10.1.0.5", "10.1.0.6", "10.2.0.2", "10.2.0.2"],
    ["ours is in the next range", both, "10.1.0.5", "10.2.0.2", "10.1.0.6", "10.2.0.2"],
    ["theirs is past the last range", both, "10.2.0.5", "10.2.0.6", "10.1.0.2", "10.1.0.2"],
    ["ours is past the last range", both, "10.2.0.5", "10.1.0.3", "10.2.0.6", "10.1.0.3"],
    ["theirs is in the first range again", both, "10.1.0.5", "10.2.0.6", "10.1.0.2", "10.1.0.2"],
    ["ours is in the first range again", both, "10.1.0.5", "10.1.0.2", "10.2.0.6", "10.1.0.2"],
    ["nobody was first, theirs is later", both, undefined, "10.1.0.6", "10.2.0.2", "10.2.0.2"],
    ["nobody was first, ours is later", both, undefined, "10.2.0.2", "10.1.0.6", "10.2.0.2"],
    ["theirs is no address of the set", both, "10.1.0.5", "10.1.0.6", "10.9.0.1", "10.1.0.6"],
    ["theirs is no address", both, "10.1.0.5", "10.1.0.6", "x", "10.1.0.6"],
  ];
  test.each(cases)("%s", (_, subnets, last, ours, theirs, left) => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    const cursor = join(made.path, "last_reserved_ip.0");
    if (last !== undefined) writeFileSync(cursor, last);
    // So that the search finds ours.
    for (const taken of candidates(subnets).filter((address) => address !== ours)) {
      writeFileSync(join(made.path, taken), "somebody\r\neth0");
    }
    const { text, tag } = leaseOf({ containerId: "c1", ifName: "eth0" });
    const lease = {
      tag,
      // Needed when the lease's file is made: the search is over, and the cursor not yet written.
      get text() {
        writeFileSync(cursor, theirs);
        return text;
      },
    };
    const wanted = { set: rangeSet(...subnets), rangeId: "0", lease, containerId: "c1", requested: undefined };
    const given = inStore(made.options, lease, (store) => allocate(store, wanted));
    expect(formatAddress(given.address)).toBe(ours);
    expect(readFileSync(cursor, "utf8")).toBe(left);
  });
});

test("who works locks the bytes that other releases lock: 0, the owner's tag, and 2^32 for the cursor", () => {
  using made = leaseDirectory();
  inStore(made.options, { text: "any", tag: -7 }, (store) => {
    const other = openSync(join(made.path, ".patchbay/locks"), "r+");
    const isFree = (start: number) => tryLockRangeExclusive(other, { start });
    const owner = 2 ** 32 - 7;
    expect([0, 1, owner - 1, owner, owner + 1].map(isFree)).toEqual([false, true, true, false, true]);
    expect(isFree(2 ** 32)).toBe(true);
    unlockRange(other, { start: 2 ** 32 });
    atCursor(store, () => expect(isFree(2 ** 32)).toBe(false));
    closeSync(other);
  });
});

describe("while another process works", () => {
  const worker = join(import.meta.dir, "../support/lease-worker.ts");
  const addApart = (made: LeaseDirectory, id: string, timeout: number) => {
    const task: Steps = { directory: made.path, subnet: one, steps: [`add ${id}`] };
    return Bun.spawnSync([process.execPath, worker, "steps", JSON.stringify(task)], { timeout });
  };
  const waits = (made: LeaseDirectory) => addApart(made, "waits", patienceMs()).exitedDueToTimeout === true;
  const succeeds = (made: LeaseDirectory) =>
    addApart(made, "goes-on", TIMEOUT_MS / 3).stdout.toString().startsWith('["10.1.0.');

  test("one at a time writes the cursor, and holds up nobody when it has", () => {
    using made = leaseDirectory();
    // The block is there, so nobody needs the store alone.
    add(made, rangeSet(one), "first");
    inStore(made.options, undefined, (store) => {
      atCursor(store, () => expect(waits(made)).toBe(true));
      expect(succeeds(made)).toBe(true);
    });
  }, TIMEOUT_MS);

  test("who needs the store alone has it alone until all is done, and then no more", () => {
    using made = leaseDirectory();
    add(made, rangeSet(one), "first");
    inStore(made.options, undefined, (store) => {
      exclusively(store, () => {
        exclusively(store, () => {});
        expect(waits(made)).toBe(true);
      });
      expect(succeeds(made)).toBe(true);
    });
  }, TIMEOUT_MS);
});
