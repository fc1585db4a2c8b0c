/** Which plugin a name means. */
import { expect, test } from "bun:test";
import { pluginNamed, pluginNames } from "../../src/plugins/table.ts";

const meant: Record<string, string | undefined> = {
  bridge: "bridge",
  "host-local": "host-local",
  "buildkit-cni-bridge": "bridge",
  "buildkit-cni-host-local": "host-local",
  "my-host-device": "host-device",
  "cnv-tuning": "tuning",
  "-bridge": "bridge",
  "bridge-": undefined,
  cnibridge: undefined,
  local: undefined,
  Bridge: undefined,
  "": undefined,
  "netavark-bridge": undefined,
  toString: undefined,
};

for (const [name, plugin] of Object.entries(meant)) {
  test(`"${name}" means ${plugin ?? "no plugin"}`, () => expect(pluginNamed(name)).toBe(plugin!));
}

test("no plugin's name means another plugin", () => {
  const others = pluginNames.flatMap((name) => pluginNames.filter((plugin) => name.endsWith(`-${plugin}`)));
  expect(others).toEqual([]);
});
