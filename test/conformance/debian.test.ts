/** Debian's build of the Go plugins fails exactly those demands that docs/conformance.md lists. */
import { expect, test } from "bun:test";
import { everyKnownFailure, knownFailures } from "../support/conformance-page.ts";
import { failedDemands, reportOn } from "../support/conformance.ts";
import { GO_PLUGINS } from "../support/plugins.ts";

test("what the page lists, with a reason for each, is what they do not meet", async () => {
  const { code, report } = await reportOn(GO_PLUGINS);
  expect(code).toBe(1);
  expect(report.plugins.length).toBe(16);
  for (const plugin of report.plugins) {
    const asked = plugin.demands.filter(({ outcome }) => outcome !== "skipped").map(({ name }) => name);
    const known = knownFailures(plugin.plugin).filter((name) => asked.includes(name));
    expect({ plugin: plugin.plugin, failed: failedDemands(plugin).sort() }).toEqual({
      plugin: plugin.plugin,
      failed: known.sort(),
    });
  }
  const reasons = everyKnownFailure().map(({ reason }) => reason);
  expect(reasons.filter((reason) => reason.length < 20)).toEqual([]);
});
