/** Addresses that were given back, from one service to the next. */
import { expect, test } from "bun:test";
import { GivenBack } from "../../../src/dhcp/service/former-leases.ts";

const owner = (containerId: string) => ({ network: "net", containerId, ifName: "eth0" });
const address = Uint8Array.of(10, 1, 0, 9);

/** A journal that has the text. */
function journalOf(text: string) {
  let kept = text;
  return { givenBack: () => kept, keepGivenBack: (text: string) => void (kept = text) };
}

test.each([["a client id", "0102"], ["none", undefined]])("%s: known to the next service", (_, clientId) => {
  const journal = journalOf(""), first = new GivenBack(journal);
  first.add(owner("c1"), clientId, address);
  first.keep();
  const next = new GivenBack(journal);
  expect(next.of(owner("c1"), clientId)).toEqual(address);
  expect(next.of({ ...owner("c1"), network: "other" }, clientId)).toBeUndefined();
});

test("the newest thousand are kept", () => {
  const journal = journalOf(""), first = new GivenBack(journal);
  for (let number = 0; number < 1500; number++) first.add(owner(`c${number}`), undefined, address);
  first.keep();
  const next = new GivenBack(journal);
  expect([499, 500, 1499].map((number) => next.of(owner(`c${number}`), undefined)))
    .toEqual([undefined, address, address]);
});

test("lines that are none count as none, and those between them count", () => {
  const journal = journalOf("");
  const good = new GivenBack(journal);
  good.add(owner("c1"), undefined, address);
  good.keep();
  const [line] = journal.givenBack().split("\n") as [string];
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
    expect([one, new GivenBack(journalOf(`${one}\n${line}\n${one}`)).of(owner("c1"), undefined)])
      .toEqual([one, address]);
  }
});

test("a directory that cannot be written to ends no service", () => {
  const fails = () => {
    throw new Error("the disk is full");
  };
  new GivenBack({ givenBack: () => "", keepGivenBack: fails }).keep();
});
