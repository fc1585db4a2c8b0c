/** The journal as files: what one call leaves behind, and what the next one makes of it. */
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { Journal, recordsIn } from "../../../../src/services/dhcp/journal/journal.ts";
import { recordOf } from "../../../support/dhcp/lease-record.ts";

const one = recordOf("c1"), other = recordOf("c2");
const name = (containerId: string) => `net@${containerId}@eth0.lease`;

type Look = () => { files: string[]; toBeReleased: string[] };

function inDirectory(work: (journal: Journal, look: Look, directory: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-journal-")), journal = Journal.open(directory)!;
  try {
    work(journal, () => ({
      files: readdirSync(directory).filter((file) => file !== "lock").sort(),
      toBeReleased: recordsIn(directory).filter(({ isToBeReleased }) => isToBeReleased).map((entry) =>
        entry.record.containerId
      )
        .sort(),
    }), directory);
  } finally {
    journal.close();
    rmSync(directory, { recursive: true });
  }
}

test("a lease that was given up and is written again is held, and the other one stays given up", () => {
  inDirectory((journal, look) => {
    for (const isDurable of [true, false]) {
      for (const each of [one, other]) journal.write(each, isDurable);
      for (const each of [one, other]) journal.releaseLater(each, isDurable);
      expect(look().toBeReleased).toEqual(["c1", "c2"]);
      journal.write(one, isDurable);
      expect(look().toBeReleased).toEqual(["c2"]);
      expect(look().files).toEqual([name("c1"), name("c2"), `${name("c2")}.given-up`]);
    }
  });
});

test("what is removed leaves nothing of it, and nothing of another is removed", () => {
  inDirectory((journal, look) => {
    for (const each of [one, other]) journal.write(each, false);
    for (const each of [one, other]) journal.releaseLater(each, false);
    journal.remove(one);
    expect(look()).toEqual({ files: [name("c2"), `${name("c2")}.given-up`], toBeReleased: ["c2"] });
    journal.remove(one);
    journal.remove(other);
    expect(look().files).toEqual([]);
  });
});

test("a note without a record goes, and a note with one stays", () => {
  inDirectory((journal, look) => {
    journal.write(one, false);
    for (const each of [one, other]) journal.releaseLater(each, false);
    const problems: string[] = [];
    const entries = journal.entries((problem) => problems.push(problem));
    expect(entries.map(({ record: { containerId }, isToBeReleased }) => [containerId, isToBeReleased])).toEqual([[
      "c1",
      true,
    ]]);
    expect(look().files).toEqual([name("c1"), `${name("c1")}.given-up`]);
    expect(problems).toEqual([]);
  });
});

test("one process has the journal; its number is there for people, until it closes the journal", () => {
  inDirectory((_, __, parent) => {
    const directory = join(parent, "own"), journal = Journal.open(directory)!;
    const open = () => readdirSync("/proc/self/fd").length, before = open();
    expect([Journal.open(directory), Journal.isHeld(directory), open()]).toEqual([undefined, true, before]);
    expect(Journal.holderOf(directory)).toBe(String(process.pid));
    journal.close();
    expect([Journal.isHeld(directory), open()]).toEqual([false, before - 1]);
    // The number of an earlier one, which is longer, is gone.
    writeFileSync(join(directory, "lock"), "99999999999999\n");
    const next = Journal.open(directory)!;
    expect(readFileSync(join(directory, "lock"), "utf8")).toBe(`${process.pid}\n`);
    writeFileSync(join(directory, "lock"), "");
    expect(Journal.holderOf(directory)).toBe("unknown");
    next.close();
  });
});

test("a look makes nothing; a service makes its directory, for itself alone", () => {
  inDirectory((_, __, parent) => {
    const directory = join(parent, "new", "er");
    expect([Journal.isHeld(directory), recordsIn(directory), Journal.holderOf(directory)]).toEqual([
      false,
      [],
      "unknown",
    ]);
    expect(existsSync(directory)).toBe(false);
    const journal = Journal.open(directory)!;
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    journal.write(one, false);
    journal.close();
    rmSync(join(directory, "lock"));
    expect(Journal.isHeld(directory)).toBe(false);
    // A directory that others may write to is nobody's journal.
    chmodSync(directory, 0o777);
    expect([Journal.isHeld(directory), recordsIn(directory)]).toEqual([false, []]);
    expect(() => Journal.open(directory)).toThrow();
    chmodSync(directory, 0o700);
    expect(recordsIn(directory).length).toBe(1);
  });
});

test("a damaged record is set aside, and told; a half-written one goes; who only looks leaves both", () => {
  inDirectory((journal, look, directory) => {
    journal.write(one, true);
    const put = (file: string, text: string) => writeFileSync(join(directory, file), text, { mode: 0o600 });
    put(name("c2"), "{}");
    put(name("c3"), JSON.stringify(one));
    put(`${name("c4")}.new`, "{");
    put("a note of somebody's", "");
    const before = look().files, found = () => recordsIn(directory).map((entry) => entry.record.containerId);
    expect([found(), look().files]).toEqual([["c1"], before]);
    const problems: string[] = [];
    expect(journal.entries((problem) => problems.push(problem)).length).toBe(1);
    expect(look().files).toEqual([
      "a note of somebody's",
      name("c1"),
      `${name("c2")}.damaged`,
      `${name("c3")}.damaged`,
    ]);
    const path = (containerId: string) => join(directory, name(containerId));
    expect(problems.sort()).toEqual([
      `${path("c2")} is not a lease (a record of format undefined, which this version does not know); it is ${
        path("c2")
      }.damaged now`,
      `${path("c3")} is not a lease (the lease in it is ${name("c1")}); it is ${path("c3")}.damaged now`,
    ]);
    expect(journal.entries(() => problems.push("again")).length).toBe(1);
    expect(problems.length).toBe(2);
  });
});

test("a record in a newer format stays, and is told each time", () => {
  inDirectory((journal, look, directory) => {
    const path = join(directory, name("c2")), problems: string[] = [];
    writeFileSync(path, JSON.stringify({ format: 2, more: "of another form" }), { mode: 0o600 });
    const newer = `${path} is a record of format 2: a newer version of this service wrote it, and can hold the lease`;
    for (let count = 1; count <= 2; count++) {
      expect(journal.entries((problem) => problems.push(problem))).toEqual([]);
      expect([look().files, problems]).toEqual([[name("c2")], Array(count).fill(newer)]);
    }
    expect(recordsIn(directory)).toEqual([]);
  });
});

test("a text for the next service is kept, replaced and removed", () => {
  inDirectory((journal, look) => {
    expect(journal.releasedAddresses()).toBe("");
    for (const text of ["one\n", "another\n"]) {
      journal.keepReleasedAddresses(text);
      expect([journal.releasedAddresses(), look().files]).toEqual([text, ["given-back"]]);
    }
    journal.keepReleasedAddresses("");
    journal.keepReleasedAddresses("");
    expect([journal.releasedAddresses(), look().files]).toEqual(["", []]);
  });
});
