/** Two ADDs of one attachment at once write into one ledger: the one that fails takes away no line of the other. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import { openLedger } from "../../../src/engine/ledger/open-ledger.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "ledger-"));
  process.env.PATCHBAY_STATE_DIR = directory;
});
afterEach(() => {
  delete process.env.PATCHBAY_STATE_DIR;
  rmSync(directory, { recursive: true });
});

const owner = { network: "net", containerId: "ctr", ifName: "eth0" };
const header = { ...owner, plugin: "bridge", netnsPath: "/run/netns/x", cniArgs: "", stdin: "{}" };
const answer = { links: ["veth1"], addresses: ["10.0.0.5/24"] };
const thing = (name: string) => ({ kind: { kind: "thing" }, spec: { name } });
const announced = () => readLedger(owner, "bridge")?.entries.map(({ spec }) => (spec as { name: string }).name);

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
