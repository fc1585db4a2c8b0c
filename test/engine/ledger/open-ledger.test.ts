/** How ADD opens its ledger while others remove files. */
import { expect, test } from "bun:test";
import { listLedgers, removeEmptyLedgers } from "../../../src/engine/ledger/ledger.ts";
import { listDirectory } from "../../../src/ffi/files.ts";
import * as locks from "../../../src/process/lock.ts";
import { made, openBench, recorded } from "../../support/engine-bench.ts";
import { replacedExports } from "../../support/replaced-exports.ts";

const openFiles = () => listDirectory("/proc/self/fd").length;

test("an ADD whose file GC removes before it is locked begins again", () => {
  using bench = openBench();
  const before = openFiles(), lock = locks.lockShared, removedFirst: string[][] = [];
  const lockShared = (fd: number) => {
    if (removedFirst.length === 0) {
      removedFirst.push(bench.ledgers());
      removeEmptyLedgers("net");
    }
    return lock(fd);
  };
  const replaced = replacedExports(require.resolve("../../../src/process/lock.ts"), locks, { lockShared });
  replaced.begin();
  try {
    recorded([made("thing x")], { network: "net", containerId: "a", ifName: "eth0", plugin: "p" });
  } finally {
    replaced.end();
  }
  expect(removedFirst).toEqual([["net/a@eth0@p"]]);
  expect(listLedgers("net", "p").map(({ header }) => header.containerId)).toEqual(["a"]);
  expect(openFiles()).toBe(before);
});
