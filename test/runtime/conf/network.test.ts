/** Configurations that are not networks are refused with the reference library's texts. */
import { expect, test } from "bun:test";
import { parseNetwork } from "../../../src/runtime/conf/network.ts";
import { thrown } from "../../support/outcome.ts";

const text = (work: () => unknown) => (thrown(work) as Error | undefined)?.message;

const refused: [config: unknown, message: string][] = [
  [[], "error parsing configuration list: invalid type []interface {}"],
  [{}, "error parsing configuration list: no name"],
  [{ Name: "n" }, "error parsing configuration list: no name"],
  [{ name: 5 }, "error parsing configuration list: invalid name type float64"],
  [{ name: "n", cniVersion: true }, "error parsing configuration list: invalid cniVersion type bool"],
  [{ name: "n", cniVersion: null }, "error parsing configuration list: invalid cniVersion type <nil>"],
  [
    { name: "n", cniVersions: {} },
    "error parsing configuration list: invalid type for cniVersions: map[string]interface {}",
  ],
  [
    { name: "n", cniVersions: ["1.0.0", 1] },
    "error parsing configuration list: invalid type for cniVersions index 1: float64",
  ],
  [
    { name: "n", cniVersions: ["1.0.0.0"] },
    'error parsing configuration list: invalid cniVersions entry 1.0.0.0 at index 0: invalid version "1.0.0.0": too many parts',
  ],
  [{ name: "n", disableCheck: 1 }, "error parsing configuration list: invalid type float64 for disableCheck"],
  [{ name: "n", disableGC: "Maybe" }, 'error parsing configuration list: invalid value "maybe" for disableGC'],
  [
    { name: "n", loadOnlyInlinedPlugins: "TRUE" },
    "error parsing configuration list: `loadOnlyInlinedPlugins` is true, and no 'plugins' key",
  ],
  [{ name: "n", plugins: {} }, "error parsing configuration list: invalid 'plugins' type map[string]interface {}"],
  [{ name: "n", plugins: [] }, "error parsing configuration list: no plugins in list"],
  [
    { name: "n", plugins: [{ type: "a" }, {}] },
    "error parsing configuration list: failed to parse plugin config 1: error parsing configuration: missing 'type'",
  ],
];

for (const [config, message] of refused) {
  test(`refused: ${JSON.stringify(config)}`, () =>
    expect(text(() => parseNetwork(JSON.stringify(config)))).toBe(message));
}

test("keys every plugin has in common must be of their type", () => {
  const wrong = [
    { type: 5 },
    { type: "t", ipam: "host-local" },
    { type: "t", ipam: { type: 1 } },
    { type: "t", dns: [] },
    { type: "t", capabilities: { ips: "yes" } },
    { type: "t", capabilities: [] },
    { type: "t", prevResult: "x" },
    { type: "t", Capabilities: { ips: 1 } },
  ];
  for (const plugin of wrong) {
    expect(text(() => parseNetwork(JSON.stringify({ name: "n", plugins: [plugin] }))))
      .toStartWith(
        "error parsing configuration list: failed to parse plugin config 0: error parsing configuration: ",
      );
  }
});

test("a plugin's keys are found in any letter case, and null counts as absent", () => {
  const { plugins } = parseNetwork(
    JSON.stringify({ name: "n", plugins: [{ TYPE: "t", Capabilities: { ips: true }, ipam: null, dns: null }] }),
  );
  expect(plugins[0]).toMatchObject({ type: "t", capabilities: { ips: true } });
});

const selected: [cniVersion: string | undefined, cniVersions: string[] | undefined, version: string][] = [
  ["1.0.0", ["0.4.0", "1.1.0"], "1.1.0"],
  ["1.2.0", ["0.4.0"], "0.4.0"],
  ["1.2.0", ["1.3.0"], "1.2.0"],
  [undefined, [], ""],
  ["1.2.3", undefined, "1.2.3"],
  ["1.0.0", ["0.3.1", "0.4.0"], "1.0.0"],
  ["", ["0.4.0", "0.3.1"], "0.4.0"],
  [undefined, undefined, ""],
];

for (const [cniVersion, cniVersions, version] of selected) {
  test(`of ${cniVersion} and [${cniVersions}], ${version || "none"} is selected`, () => {
    expect(parseNetwork(JSON.stringify({ name: "n", cniVersion, cniVersions })).cniVersion).toBe(version);
  });
}
