/** The journal as files: what one call leaves behind, and what the next one makes of it. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { Journal, recordsIn } from "../../../src/dhcp/journal/journal.ts";
import type { LeaseRecord } from "../../../src/dhcp/journal/record.ts";
import { value } from "../../support/dhcp/offer.ts";

const record = (containerId: string): LeaseRecord => ({
  format: 1,
  network: "net",
  containerId,
  ifName: "eth0",
  netnsPath: "/run/netns/none",
  mac: "02:00:00:00:00:01",
  bootId: "a boot",
  wishes: {
    clientId: value.text(containerId),
    wanted: [],
    provided: [],
    broadcast: false,
    probe: "none",
    servers: [],
    denied: [],
    onExpiry: "remove",
    ignored: [],
    priority: 0,
    v4: true,
    required: ["ipv4"],
  },
});
const one = record("c1"), other = record("c2");
const name = (containerId: string) => `net@${containerId}@eth0.lease`;

function inDirectory(work: (journal: Journal, look: () => { files: string[]; givenUp: string[] }) => void): void {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-journal-")), journal = Journal.open(directory)!;
  try {
    work(journal, () => ({
      files: readdirSync(directory).filter((file) => file !== "lock").sort(),
      givenUp: recordsIn(directory).filter(({ isGivenUp }) => isGivenUp).map((entry) => entry.record.containerId)
        .sort(),
    }));
  } finally {
    journal.close();
    rmSync(directory, { recursive: true });
  }
}

test("a lease that was given up and is written again is held, and the other one stays given up", () => {
  inDirectory((journal, look) => {
    for (const isDurable of [true, false]) {
      for (const each of [one, other]) journal.write(each, isDurable);
      for (const each of [one, other]) journal.giveUp(each, isDurable);
      expect(look().givenUp).toEqual(["c1", "c2"]);
      journal.write(one, isDurable);
      expect(look().givenUp).toEqual(["c2"]);
      expect(look().files).toEqual([name("c1"), name("c2"), `${name("c2")}.given-up`]);
    }
  });
});

test("what is removed leaves nothing of it, and nothing of another is removed", () => {
  inDirectory((journal, look) => {
    for (const each of [one, other]) journal.write(each, false);
    for (const each of [one, other]) journal.giveUp(each, false);
    journal.remove(one);
    expect(look()).toEqual({ files: [name("c2"), `${name("c2")}.given-up`], givenUp: ["c2"] });
    journal.remove(one);
    journal.remove(other);
    expect(look().files).toEqual([]);
  });
});

test("a note without a record goes, and a note with one stays", () => {
  inDirectory((journal, look) => {
    journal.write(one, false);
    for (const each of [one, other]) journal.giveUp(each, false);
    const problems: string[] = [];
    const entries = journal.entries((problem) => problems.push(problem));
    expect(entries.map(({ record: { containerId }, isGivenUp }) => [containerId, isGivenUp])).toEqual([["c1", true]]);
    expect(look().files).toEqual([name("c1"), `${name("c1")}.given-up`]);
    expect(problems).toEqual([]);
  });
});
