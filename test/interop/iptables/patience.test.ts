/** iptables' programs for the older tables, each of which takes long: a verb waits for all of them together. */
import { expect, spyOn, test } from "bun:test";
import * as finding from "../../../src/ffi/find-in-path.ts";
import { withOwnPatience } from "../../../src/process/patience.ts";
import * as running from "../../../src/process/trusted-executable.ts";
import { readTable } from "../../../src/interop/iptables/legacy-table.ts";
import * as which from "../../../src/interop/iptables/which-iptables.ts";

test("a verb runs no more of them when it has waited for as long as for one that hangs", () => {
  let now = 0;
  const limits: unknown[] = [], nothing = new Uint8Array();
  const spies = [
    spyOn(performance, "now").mockImplementation(() => now),
    spyOn(finding, "findInPath").mockImplementation((name) => `/sbin/${name}`),
    spyOn(which, "hasLegacyTable").mockImplementation(() => true),
    spyOn(running, "runTrusted").mockImplementation(({ patienceMs }) => {
      limits.push(patienceMs);
      now += 50_000;
      return { ending: { exitStatus: 0 }, stdout: nothing, stderr: nothing };
    }),
  ];
  const read = () => readTable("nat", 4).rules("CNI-FORWARD");
  try {
    withOwnPatience(() => {
      for (let count = 0; count < 3; count++) expect(read()).toEqual([]);
      for (let count = 0; count < 2; count++) {
        expect(read).toThrow("/sbin/iptables-legacy-save: iptables' programs have taken 120 s already");
      }
    });
    withOwnPatience(read);
    expect(limits).toEqual([120_000, 70_000, 20_000, 120_000]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
});
