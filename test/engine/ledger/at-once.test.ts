/** Two ADDs of one attachment at once write into one ledger: the one that fails takes away no line of the other. */
import { expect, test } from "bun:test";
import { openLedger } from "../../../src/engine/ledger/open-ledger.ts";
import { announced, answer, header, stateDirectoryForEachTest, thing } from "../../support/ledgers.ts";

stateDirectoryForEachTest();

test.each([["before", ["a", "b", "c"]], ["after", ["b", "a", "c"]]] as const)(
  "an ADD that fails beside another one leaves what the other wrote, when that began %s it",
  (when, all) => {
    const open = { before: () => openLedger(header), after: () => undefined }[when]();
    open?.intend([thing("a")]);
    const failing = openLedger(header);
    failing.intend([thing("b")]);
    const other = open ?? openLedger(header);
    if (open === undefined) other.intend([thing("a")]);
    other.intend([thing("c")]);
    failing.abandon();
    expect(announced()).toEqual([...all]);
    expect(other.finish(answer)).toBe(true);
    expect(announced()).toEqual([...all]);
  },
);

test("an ADD that fails leaves what another one wrote that was done meanwhile", () => {
  const failing = openLedger(header);
  failing.intend([thing("a")]);
  const other = openLedger(header);
  other.intend([thing("b")]);
  other.finish(answer);
  failing.abandon();
  expect(announced()).toEqual(["a", "b"]);
});
