/** Our plugins meet every demand that this machine's kernel lets be asked. */
import { expect, test } from "bun:test";
import { pluginNames } from "../../src/plugins/table.ts";
import { failuresOf, reportOn } from "../support/conformance.ts";
import { patchbayPlugins } from "../support/plugins.ts";

test("every plugin of ours meets every demand", async () => {
  const { code, report } = await reportOn(patchbayPlugins());
  expect(report.plugins.map(({ plugin }) => plugin)).toEqual([...pluginNames]);
  expect(report.plugins.flatMap((one) => failuresOf(one).map((failure) => `${one.plugin}: ${failure}`))).toEqual([]);
  expect(code).toBe(0);
  // These need nothing that a kernel may lack.
  for (const plugin of ["bridge", "host-local", "loopback", "ptp", "sbr", "static", "tuning"]) {
    expect(report.plugins.find((one) => one.plugin === plugin)!.passed, plugin).toBeGreaterThan(35);
  }
});
