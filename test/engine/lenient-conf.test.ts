/** DEL of every plugin ignores optional parts of its configuration that are malformed. */
import { expect, test } from "bun:test";
import { CniError } from "../../src/cni/error.ts";
import { lenientConf } from "../../src/engine/lenient-conf.ts";
import { whileWarning } from "../../src/process/warn.ts";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";

test.each([...pluginNames])("DEL of %s does without what is wrong, and with what is not", (name) => {
  const plugin = loadPlugin(name)!;
  const right = { cniVersion: "1.0.0", Name: "net", type: name };
  const wrong = { args: 7, runtimeConfig: "x", dns: [], prevResult: "none", capabilities: 1 };
  expect(() => plugin.validate({ ...right, ...wrong })).toThrow(CniError);
  const said: string[] = [];
  const read = (document: Record<string, unknown>) =>
    whileWarning((message) => said.push(message), () => lenientConf(plugin, document));
  expect(read({ ...wrong, ...right, unknown: {} })).toEqual(plugin.validate(right));
  expect(said).toEqual([expect.stringMatching(/^DEL ignores malformed keys of the configuration: ./)]);
  expect(read(right)).toEqual(plugin.validate(right));
  expect(said).toHaveLength(1);
  expect(() => lenientConf(plugin, { ...right, IPAM: "host-local" })).toThrow(/"ipam" must be an object/);
});
