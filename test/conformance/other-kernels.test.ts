/** Plugins whose links this machine's kernel may lack, held to the demands on a kernel that has them. */
import { expect, test } from "bun:test";
import { failedDemands, failuresOf, reportOn } from "../support/conformance.ts";
import { knownFailures } from "../support/conformance-page.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { GO_PLUGINS, patchbayPlugins } from "../support/plugins.ts";

/** In an emulated machine. */
const PATIENCE_MS = 1_200_000;

const needs: Record<string, Feature> = {
  dummy: "dummy links",
  ipvlan: "ipvlan links",
  vlan: "VLAN links",
  vrf: "VRF links",
};

for (const [plugin, feature] of Object.entries(needs)) {
  test.skipIf(lacks(feature))(`our ${plugin} meets every demand`, async () => {
    const { report: { plugins: [found] } } = await reportOn(patchbayPlugins(), plugin);
    expect(failuresOf(found!)).toEqual([]);
    expect(found!.passed).toBeGreaterThan(35);
  }, PATIENCE_MS);

  if (plugin === "dummy") continue; // Debian's release has none.
  test.skipIf(lacks(feature))(`Debian's ${plugin} fails what the page lists`, async () => {
    const { report: { plugins: [found] } } = await reportOn(GO_PLUGINS, plugin);
    expect(failedDemands(found!).sort()).toEqual(knownFailures(plugin).sort());
  }, PATIENCE_MS);
}
