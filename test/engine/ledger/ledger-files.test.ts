/** The files of ledgers: which of a directory are read, which empty ones go, and what happens where one is broken or lost. */
import { describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import {
  listLedgers,
  listLedgersOf,
  listLedgersOfContainer,
  readLedger,
  removeAllEmptyLedgers,
  removeEmptyLedgers,
  removeEmptyLedgersOfContainer,
  removeLedger,
  removeLostLedger,
  removing,
  repairing,
  someLedgers,
} from "../../../src/engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../../src/engine/ledger/record.ts";
import { closeFile, listDirectory, O_RDONLY } from "../../../src/ffi/files.ts";
import * as locks from "../../../src/process/lock.ts";
import { lockShared } from "../../../src/process/lock.ts";
import { openExistingState } from "../../../src/process/state-file.ts";
import { benchForEachTest, made, owner, recorded, warningsOf } from "../../support/engine-bench.ts";
import { replacedExports } from "../../support/replaced-exports.ts";

const bench = benchForEachTest();

const names = (records: readonly LedgerRecord[]) =>
  records.map(({ header: { network, containerId, ifName, plugin } }) =>
    `${network}/${containerId}@${ifName}@${plugin}`
  )
    .sort();
const every = () => {
  for (const network of ["net", "two"]) {
    for (const containerId of ["a", "ab"]) {
      for (const ifName of ["eth0", "eth01"]) {
        for (const plugin of ["p", "q"]) recorded([made("thing x")], { network, containerId, ifName, plugin });
      }
    }
  }
};
const openFiles = () => listDirectory("/proc/self/fd").length;

describe("which are read", () => {
  test("those of a container, in all networks", () => {
    every();
    const both = (network: string) =>
      ["eth01@p", "eth01@q", "eth0@p", "eth0@q"].map((rest) => `${network}/a@${rest}`);
    expect(names(listLedgersOfContainer("a"))).toEqual([...both("net"), ...both("two")]);
  });

  test("those of an attachment", () => {
    every();
    expect(names(listLedgersOf({ network: "two", containerId: "a", ifName: "eth0" }))).toEqual([
      "two/a@eth0@p",
      "two/a@eth0@q",
    ]);
  });

  test("of long names those that begin alike are told apart", () => {
    const [one, other] = ["1", "2"].map((end) => "x".repeat(210) + end) as [string, string];
    for (const containerId of [one, other]) recorded([made("thing x")], { containerId });
    expect(listLedgersOfContainer(one).map(({ header }) => header.containerId)).toEqual([one]);
    expect(listLedgersOf({ ...owner, containerId: other }).map(({ header }) => header.containerId)).toEqual([other]);
  });

  test("some of a plugin, and no more than asked for: each of them has its turn", () => {
    every();
    expect(names(someLedgers("p", 8))).toHaveLength(8);
    const seen = new Set<string>();
    for (let round = 0; round < 1000 && seen.size < 8; round++) {
      const some = names(someLedgers("p", 3));
      expect(new Set(some).size).toBe(3);
      for (const name of some) seen.add(name);
    }
    expect([...seen].every((name) => name.endsWith("@p"))).toBe(true);
    expect(seen.size).toBe(8);
  });

  test("nothing in a directory that others can write to, though it is the state directory", () => {
    every();
    for (const directory of [bench.directory, `${bench.directory}/net`]) {
      chmodSync(directory, 0o777);
      warningsOf(() => {
        expect(readLedger({ network: "net", containerId: "a", ifName: "eth0" }, "p")).toBeUndefined();
        expect(listLedgersOfContainer("a")).toHaveLength(directory === bench.directory ? 0 : 4);
      });
      chmodSync(directory, 0o700);
    }
  });

  test("one that is another's is left out, and so is a copy under another name: once, with a warning", () => {
    recorded([made("thing x")], { containerId: "a" });
    expect(warningsOf(() => expect(readLedger(owner, "test")).toBeUndefined())).toEqual([]);
    symlinkSync("a@eth0@test", `${bench.directory}/net/b@eth0@test`);
    copyFileSync(`${bench.directory}/net/a@eth0@test`, `${bench.directory}/net/c@eth0@test`);
    const leftOut = (name: string) => expect.stringMatching(new RegExp(`^ledger .*/net/${name} is left out: `));
    expect(warningsOf(() => {
      for (let time = 0; time < 2; time++) expect(names(listLedgers("net", "test"))).toEqual(["net/a@eth0@test"]);
    })).toEqual([leftOut("b@eth0@test"), leftOut("c@eth0@test")]);
  });
});

describe("empty files", () => {
  const empty = (...paths: string[]) => {
    for (const path of paths) {
      mkdirSync(`${bench.directory}/${path.split("/")[0]}`, { recursive: true, mode: 0o700 });
      writeFileSync(`${bench.directory}/${path}`, "", { mode: 0o600 });
    }
  };
  const all = ["net/a@eth0@p", "net/a@eth0@q", "net/ab@eth0@p", "two/a@eth0@p", "two/c@eth0@q"];

  test("go from one network, from a container's, from a plugin's, or all, with their directories", () => {
    const ways: [remove: () => void, left: string[]][] = [
      [() => removeEmptyLedgers("net"), ["two/a@eth0@p", "two/c@eth0@q"]],
      [() => removeEmptyLedgersOfContainer("a"), ["net/ab@eth0@p", "two/c@eth0@q"]],
      [() => removeAllEmptyLedgers("p"), ["net/a@eth0@q", "two/c@eth0@q"]],
      [() => removeAllEmptyLedgers(), []],
    ];
    for (const [remove, left] of ways) {
      empty(...all);
      const before = openFiles();
      remove();
      expect(openFiles()).toBe(before);
      expect(bench.ledgers()).toEqual(left);
      removeAllEmptyLedgers();
      expect(readdirSync(bench.directory)).toEqual([]);
    }
  });

  test("stay while an ADD that has not written yet holds them", () => {
    empty("net/a@eth0@p", "net/b@eth0@p");
    const { fd } = openExistingState(`${bench.directory}/net/a@eth0@p`, O_RDONLY)!;
    lockShared(fd);
    removeEmptyLedgers("net");
    expect(bench.ledgers()).toEqual(["net/a@eth0@p"]);
    closeFile(fd);
    removeEmptyLedgers("net");
    expect(bench.ledgers()).toEqual([]);
  });

  test("of a directory that is empty itself", () => {
    mkdirSync(`${bench.directory}/net`, { mode: 0o700 });
    removeEmptyLedgersOfContainer("a");
    expect(readdirSync(bench.directory)).toEqual([]);
  });

  test("what is no ledger's stays: files by other names, and directories that others have made", () => {
    empty("etc/environment", "etc/x.lock", "net/a@eth0@p", "own/file");
    for (const directory of ["etc", "boot"]) {
      mkdirSync(`${bench.directory}/${directory}`, { recursive: true });
      chmodSync(`${bench.directory}/${directory}`, 0o755);
    }
    removeAllEmptyLedgers();
    removeEmptyLedgersOfContainer("a");
    removeEmptyLedgers("etc");
    expect(readdirSync(bench.directory, { recursive: true }).map(String).sort()).toEqual([
      "boot",
      "etc",
      "etc/environment",
      "etc/x.lock",
      "own",
      "own/file",
    ]);
  });

  test("a ledger with a long name counts by its hash", () => {
    const long = `${"c".repeat(100)}~${"0f".repeat(32)}`;
    empty(`net/${long}`, `net/${long}0`);
    removeAllEmptyLedgers();
    expect(readdirSync(`${bench.directory}/net`)).toEqual([`${long}0`]);
  });

  test("what is not empty stays, and what is no file", () => {
    recorded([made("thing x")], { containerId: "a" });
    writeFileSync(`${bench.directory}/net/b@eth0@test`, "x", { mode: 0o600 });
    symlinkSync("none", `${bench.directory}/net/c@eth0@test`);
    mkdirSync(`${bench.directory}/net/d@eth0@test`);
    writeFileSync(`${bench.directory}/net/e@eth0@test`, "");
    chmodSync(`${bench.directory}/net/e@eth0@test`, 0o666);
    const before = bench.ledgers();
    removeEmptyLedgers("net");
    removeAllEmptyLedgers();
    expect(bench.ledgers()).toEqual(before);
  });

  test("one stays that an ADD is about to write into, and those in a directory of another's", () => {
    empty("net/a@eth0@p", "two/a@eth0@p");
    const { fd } = openExistingState(`${bench.directory}/net/a@eth0@p`, O_RDONLY)!;
    lockShared(fd);
    chmodSync(`${bench.directory}/two`, 0o777);
    removeEmptyLedgers("net");
    warningsOf(() => removeEmptyLedgers("two"));
    expect(bench.ledgers()).toEqual(["net/a@eth0@p", "two/a@eth0@p"]);
    closeFile(fd);
    removeEmptyLedgers("net");
    expect(bench.ledgers()).toEqual(["two/a@eth0@p"]);
  });
});

describe("the last step of DEL", () => {
  const path = () => `${bench.directory}/net/ctr@eth0@test`;

  test("succeeds when there is nothing, and leaves the directory of others", () => {
    removeLedger(owner, "test");
    recorded([made("thing x")]);
    recorded([made("thing x")], { containerId: "other" });
    removeLedger(owner, "test");
    removeLedger(owner, "test");
    expect(bench.ledgers()).toEqual(["net/other@eth0@test"]);
  });

  test("a lost ledger goes", () => {
    mkdirSync(`${bench.directory}/net`, { mode: 0o700 });
    writeFileSync(path(), "broken", { mode: 0o600 });
    removeLostLedger(owner, "test");
    expect(readdirSync(bench.directory)).toEqual([]);
  });

  test("one in a directory that others can write to stays, and so does what is no file, with a warning", () => {
    mkdirSync(`${bench.directory}/net`);
    writeFileSync(path(), "broken", { mode: 0o600 });
    for (const directory of [`${bench.directory}/net`, bench.directory]) {
      chmodSync(directory, 0o777);
      expect(warningsOf(() => removeLostLedger(owner, "test"))).toEqual([]);
      expect(existsSync(path())).toBe(true);
      chmodSync(directory, 0o700);
    }

    const folder = { ...owner, network: "two" };
    mkdirSync(`${bench.directory}/two/ctr@eth0@test`, { mode: 0o700, recursive: true });
    expect(warningsOf(() => removeLostLedger(folder, "test"))).toEqual([
      expect.stringContaining(`ledger ${bench.directory}/two/ctr@eth0@test stays: `),
    ]);
  });
});

describe("the lock", () => {
  test("neither DEL nor a repair leaves a file open", () => {
    recorded([made("thing x")]);
    const record = readLedger(owner, "test")!, before = openFiles();
    expect(removing(record, () => openFiles() - before)).toBe(1);
    expect(removing(undefined, () => openFiles() - before)).toBe(0);
    expect(repairing(record, () => {})).toBe(true);
    expect(removing(record, () => "done", [record])).toBe("done");
    expect(() =>
      removing(record, () => {
        throw new Error("not now");
      })
    ).toThrow("not now");
    expect(openFiles()).toBe(before);
  });

  test("DEL goes on where the file cannot be opened", () => {
    recorded([made("thing x")]);
    const record = readLedger(owner, "test")!;
    chmodSync(record.path, 0o666);
    expect(removing(record, () => "done")).toBe("done");
  });

  test("a repair that hangs does not hold up DEL for ever, and is told; nothing else is passed over", () => {
    recorded([made("thing x")]);
    const record = readLedger(owner, "test")!;
    const fails = (error: Error) => {
      const lockShared = () => {
        throw error;
      };
      const replaced = replacedExports(require.resolve("../../../src/process/lock.ts"), locks, {
        lockShared,
        tryLockShared: () => false,
      });
      replaced.begin();
      try {
        return warningsOf(() => expect(removing(record, () => "done")).toBe("done"));
      } finally {
        replaced.end();
      }
    };
    expect(fails(new locks.StillLocked("it is locked"))).toEqual(["DEL goes on without the lock: it is locked"]);
    expect(() => fails(new Error("no locks here"))).toThrow("no locks here");
  });

  test("the container that was gone is in use: nothing is removed", () => {
    recorded([made("thing x")]);
    const record = readLedger(owner, "test")!, { fd } = openExistingState(record.path, O_RDONLY)!;
    lockShared(fd);
    expect(() => removing(record, () => expect.unreachable(), [record])).toThrow(
      "eth0 of container ctr stays in network net: it is in use",
    );
    closeFile(fd);
  });
});
