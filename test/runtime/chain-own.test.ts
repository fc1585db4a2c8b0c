/** Networks of our own plugins: what an ADD that fails takes back, and versions at the border of what they have. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { whileWarning } from "../../src/process/warn.ts";
import { recordFile } from "../../src/runtime/cache.ts";
import { addNetwork, checkNetwork, deleteNetwork, networkStatus } from "../../src/runtime/chain.ts";
import { parseNetwork } from "../../src/runtime/conf/network.ts";
import type { Runtime } from "../../src/runtime/plugin-call.ts";
import {
  asked,
  benchForEachTest,
  type BenchSpec,
  containers,
  containerWith,
  made,
  NETNS,
  opens,
  pluginOf,
  plugins,
} from "../support/engine-bench.ts";
import { textThrown } from "../support/outcome.ts";

const bench = benchForEachTest();
let runtime: Runtime;
beforeEach(() => {
  containers[NETNS] = containerWith({});
  runtime = { configDirectory: "/none", pluginPath: "", cacheDirectory: `${bench.directory}-cache` };
  makes("a");
  makes("b");
});
afterEach(() => rmSync(runtime.cacheDirectory, { recursive: true, force: true }));

const request = { containerId: "web", netnsPath: NETNS, ifName: "eth0", cniArgs: [], capabilityArgs: {} };
function makes(name: string, more: Partial<BenchSpec> = {}): void {
  plugins[name] = pluginOf([made(`thing ${name}`, more)], { name });
}
const networkOf = (types: string[], cniVersion = "1.1.0") =>
  parseNetwork(JSON.stringify({ cniVersion, name: "net", plugins: types.map((type) => ({ type })) }));
const cacheFile = () => recordFile(runtime.cacheDirectory, { network: "net", ...request }).path;

describe("an ADD that fails", () => {
  const fails = { apply: "now" };

  test("takes back what it made, and nothing that it did not: of others there may be ledgers", () => {
    addNetwork(runtime, networkOf(["a"]), request);
    rmSync(cacheFile());
    asked.length = 0;
    makes("b", { fails });
    expect(textThrown(() => addNetwork(runtime, networkOf(["b", "a"]), request))).toContain("cannot apply b");
    expect(asked).toEqual(["apply thing b"]);
    expect(bench.ledgers()).toEqual(["net/web@eth0@a"]);
  });

  test("leaves what an earlier ADD of the plugin that failed has made", () => {
    addNetwork(runtime, networkOf(["a"]), request);
    rmSync(cacheFile());
    makes("a", { fails });
    asked.length = 0;
    expect(textThrown(() => addNetwork(runtime, networkOf(["a"]), request))).toContain("cannot apply a");
    expect([asked, bench.ledgers()]).toEqual([["apply thing a"], ["net/web@eth0@a"]]);
  });

  test("takes back what the plugin had made in the first place, where it is in the chain twice", () => {
    let calls = 0;
    const list = () => [made("thing a", calls++ > 0 ? { fails } : {})];
    plugins["a"] = pluginOf([], {
      name: "a",
      add(at) {
        at.applyAll(list());
        return { cniVersion: "1.1.0" };
      },
    });
    expect(textThrown(() => addNetwork(runtime, networkOf(["a", "a"]), request))).toContain("cannot apply a");
    expect([asked.slice(0, 3), bench.ledgers()]).toEqual([["apply thing a", "apply thing a", "remove thing a"], []]);
  });

  test("opens the host once for the whole chain", () => {
    addNetwork(runtime, networkOf(["a", "b"]), request);
    expect([opens[0], opens.at(-1)]).toEqual([`open ${NETNS}`, `close ${NETNS}`]);
    expect(opens.filter((line) => line.startsWith("open"))).toHaveLength(1);
  });
});

test("nothing is made where the records cannot be trusted", () => {
  mkdirSync(`${runtime.cacheDirectory}/results`, { recursive: true });
  chmodSync(`${runtime.cacheDirectory}/results`, 0o777);
  expect(textThrown(() => addNetwork(runtime, networkOf(["a"]), request))).toContain("must belong to");
  expect(asked).toEqual([]);
});

describe("version 0.4.0", () => {
  test("has CHECK, and hands the result on to DEL; the one before does neither", () => {
    for (const [version, has] of [["0.4.0", true], ["0.3.1", false]] as const) {
      const network = networkOf(["a"], version), given: unknown[] = [];
      plugins["a"] = pluginOf([], {
        name: "a",
        add: () => ({ cniVersion: version, ips: [{ address: "10.0.0.2/24" }] }),
      });
      addNetwork(runtime, network, request);
      const told = textThrown(() => checkNetwork(runtime, network, request));
      expect(told).toBe(has ? "" : 'configuration version "0.3.1" does not support the CHECK command');
      plugins["a"] = pluginOf([], { name: "a", del: ({ conf }) => void given.push(conf.prevResult !== undefined) });
      deleteNetwork(runtime, network, request);
      expect(given).toEqual([has]);
      expect(existsSync(cacheFile())).toBe(false);
    }
  });
});

test("a record that cannot be used is told, and does not outlive a DEL that fails", () => {
  addNetwork(runtime, networkOf(["a"]), request);
  const record = JSON.parse(readFileSync(cacheFile(), "utf8"));
  writeFileSync(cacheFile(), JSON.stringify({ ...record, result: { cniVersion: "99" } }));
  plugins["a"] = pluginOf([], {
    name: "a",
    del: () => {
      throw new Error("stuck");
    },
  });
  const said: string[] = [];
  expect(
    textThrown(() =>
      whileWarning((message) => said.push(message), () => deleteNetwork(runtime, networkOf(["a"]), request))
    ),
  )
    .toBe('plugin type="a" failed (delete): stuck');
  expect(said).toEqual([expect.stringMatching(/^DEL goes on without the cached result: ./)]);
  expect(existsSync(cacheFile())).toBe(false);
});

test("STATUS refuses a chain that begins with a plugin that needs an earlier one, and no other", () => {
  plugins["b"] = pluginOf([], { name: "b", missingPrevResult: "must be chained" });
  expect(textThrown(() => networkStatus(runtime, networkOf(["b", "a"])))).toBe(
    'must be chained; there is no prevResult; in a list, it stands behind the plugin that makes the interface, such as "bridge"',
  );
  expect(textThrown(() => networkStatus(runtime, networkOf(["a", "b"])))).toBe("");
});
