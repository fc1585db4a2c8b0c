/** Plugins that are wrong in one way each: the demands that they do not meet are found, and no others. */
import { beforeAll, expect, test } from "bun:test";
import { failedDemands, failuresOf, pluginDirectory, type Report, reportOn } from "../support/conformance.ts";
import { type Wrong, wrongPlugins } from "../support/conformance-wrong-plugins.ts";

const cases = Object.entries(wrongPlugins);

const nameOf = (title: string, { plugin }: Wrong) => `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}-${plugin}`;

const plugins: Report["plugins"] = [];

beforeAll(async () => {
  const scripts = cases.map(([title, one]) => [nameOf(title, one), one.script] as const);
  using directory = pluginDirectory(Object.fromEntries(scripts));
  const names = scripts.map(([name]) => name), half = names.length / 2;
  const reports = await Promise.all(
    [names.slice(0, half), names.slice(half)].map((some) => reportOn(directory.path, ...some)),
  );
  plugins.push(...reports.flatMap(({ report }) => report.plugins));
}, 900_000);

for (const [title, one] of cases) {
  test(title, () => {
    const found = plugins.find(({ plugin }) => plugin === nameOf(title, one))!;
    expect(failedDemands(found)).toEqual([...one.fails]);
    expect(failuresOf(found)[0]).toMatch(one.seen);
  });
}
