/** Addresses that were given back, from one service to the next. */
import { expect, spyOn, test } from "bun:test";
import * as terminal from "../../../../src/ffi/terminal.ts";
import type { LeaseRecord } from "../../../../src/services/dhcp/journal/record.ts";
import { FormerLeases, ReleasedAddresses } from "../../../../src/services/dhcp/service/former-leases.ts";

const owner = (containerId: string) => ({ network: "net", containerId, ifName: "eth0" });
const address = Uint8Array.of(10, 1, 0, 9);

/** A journal that has the text. */
function journalOf(text: string) {
  let kept = text;
  return { releasedAddresses: () => kept, keepReleasedAddresses: (text: string) => void (kept = text) };
}

test.each([["a client id", "0102"], ["none", undefined]])("%s: known to the next service", (_, clientId) => {
  const journal = journalOf(""), first = new ReleasedAddresses(journal);
  first.add(owner("c1"), clientId, address);
  first.keep();
  const next = new ReleasedAddresses(journal);
  expect(next.of(owner("c1"), clientId)).toEqual(address);
  expect(next.of({ ...owner("c1"), network: "other" }, clientId)).toBeUndefined();
});

test("the newest thousand are kept", () => {
  const journal = journalOf(""), first = new ReleasedAddresses(journal);
  for (let number = 0; number < 1500; number++) first.add(owner(`c${number}`), undefined, address);
  first.keep();
  const next = new ReleasedAddresses(journal);
  expect([499, 500, 1499].map((number) => next.of(owner(`c${number}`), undefined)))
    .toEqual([undefined, address, address]);
});

test("lines that are none count as none, and those between them count", () => {
  const journal = journalOf("");
  const good = new ReleasedAddresses(journal);
  good.add(owner("c1"), undefined, address);
  good.keep();
  const [line] = journal.releasedAddresses().split("\n") as [string];
  const damaged = [
    "",
    "{}",
    line.slice(0, -1),
    `${line}0`,
    line.replace(/"/, ""),
    `"\\" 0a010009`,
    "\0",
    "x".repeat(1e6),
  ];
  for (const one of damaged) {
    expect([one, new ReleasedAddresses(journalOf(`${one}\n${line}\n${one}`)).of(owner("c1"), undefined)])
      .toEqual([one, address]);
  }
});

test("a directory that cannot be written to ends no service", () => {
  const fails = () => {
    throw new Error("the disk is full");
  };
  const said: string[] = [];
  using _line = spyOn(terminal, "printToStderr").mockImplementation((line) => void said.push(line));
  new ReleasedAddresses({ releasedAddresses: () => "", keepReleasedAddresses: fails }).keep();
  expect(said).toEqual(["addresses that were given back are forgotten: the disk is full"]);
});

test("who gives back again is among the newest", () => {
  const journal = journalOf(""), first = new ReleasedAddresses(journal), other = Uint8Array.of(10, 1, 0, 8);
  for (let number = 0; number < 1000; number++) first.add(owner(`c${number}`), undefined, address);
  first.add(owner("c0"), undefined, other);
  first.add(owner("c1000"), undefined, address);
  first.keep();
  const next = new ReleasedAddresses(journal);
  expect(["c0", "c1", "c2", "c1000"].map((name) => next.of(owner(name), undefined))).toEqual([
    other,
    undefined,
    address,
    address,
  ]);
  // Only the last thousand lines of a longer list are read.
  const line = journal.releasedAddresses().split("\n")[0]!, filled = `${line}\n${`x\n`.repeat(1000)}`;
  expect(
    [filled.slice(0, -2), filled].map((text) => new ReleasedAddresses(journalOf(text)).of(owner("c2"), undefined)),
  )
    .toEqual([address, undefined]);
});

test("leases of before are found by their client id, or by the container's name", () => {
  const records = new FormerLeases();
  const recordOf = (containerId: string, clientId?: string) =>
    ({ ...owner(containerId), wishes: { clientId } }) as unknown as LeaseRecord;
  const [named, nameless, another] = [recordOf("c1", "01"), recordOf("c1"), recordOf("c2", "02")];
  for (const one of [named, nameless, another]) records.add(one);
  expect([records.size, [...records.all()]]).toEqual([3, [named, nameless, another]]);
  expect([records.of(owner("c9"), "01"), records.of(owner("c1"), undefined)]).toEqual([named, nameless]);
  expect(records.of({ ...owner("c1"), network: "other" }, "01")).toBeUndefined();
  expect([records.take(owner("c9"), "02"), records.take(owner("c9"), "02"), records.size]).toEqual([
    another,
    undefined,
    2,
  ]);
  records.add(another);
  expect([records.takeNamed("c1/net/eth0"), [...records.all()]]).toEqual([[named, nameless], [another]]);
  expect(records.takeNamed("c1/net/eth0")).toEqual([]);
});
