/** What is recorded of attachments, in the cache and in ledgers: which of them, and what can be read of each. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { whileWarning } from "../../src/process/warn.ts";
import { writeCache } from "../../src/runtime/cache.ts";
import {
  attachmentsOfContainer,
  attachmentsToNetwork,
  knownAttachments,
  recordedNetwork,
} from "../../src/runtime/records.ts";
import { made, recorded } from "../support/engine-bench.ts";
import { type ScriptPlugins, scriptPlugins } from "../support/script-plugins.ts";

let at: ScriptPlugins;
beforeEach(() => (at = scriptPlugins()));
afterEach(() => at[Symbol.dispose]());

const key = { network: "net", containerId: "web", ifName: "eth0" };
const list = {
  cniVersion: "1.1.0",
  name: "net",
  plugins: [{ type: "one", capabilities: { mac: true } }, { type: "two" }],
};
const result = { cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24" }] };

function cache(changes: Partial<Parameters<typeof writeCache>[1]> = {}): void {
  writeCache(at.runtime.cacheDirectory, {
    ...key,
    netnsPath: "/run/netns/x",
    cniArgs: [["K", "V"]],
    capabilityArgs: { mac: "02:00:00:00:00:01", other: 1 },
    config: JSON.stringify(list),
    result,
    ...changes,
  });
}
const places = (found: ReturnType<typeof attachmentsToNetwork>) =>
  found.map(({ network, containerId, ifName, isCached, recorded }) =>
    `${network} ${containerId} ${ifName} ${isCached} ${recorded.ledgers.length}`
  );

test("an attachment that is in both is one; others are of a network, or of a container", () => {
  cache();
  recorded([made("thing a")], { ...key, plugin: "a" });
  recorded([made("thing b")], { ...key, plugin: "b" });
  recorded([made("thing c")], { ...key, containerId: "second" });
  recorded([made("thing d")], { ...key, network: "third" });
  cache({ network: "third", containerId: "second" });
  expect(places(attachmentsToNetwork(at.runtime, "net"))).toEqual(["net web eth0 true 2", "net second eth0 false 1"]);
  expect(places(attachmentsOfContainer(at.runtime, "web"))).toEqual([
    "net web eth0 true 2",
    "third web eth0 false 1",
  ]);
  expect(
    knownAttachments(at.runtime).map(({ network, containerId, cached, ledgers }) =>
      `${network} ${containerId} ${cached !== undefined} ${ledgers.length}`
    ),
  ).toEqual(["net second false 1", "net web true 2", "third second true 0", "third web false 1"]);
  expect(knownAttachments(at.runtime, "second")).toHaveLength(2);
});

test("what ADD was called with comes from the cache; a ledger has its namespace", () => {
  cache();
  recorded([made("thing a")], { ...key, ifName: "eth1", netnsPath: "/run/netns/y", cniArgs: "A=b" });
  const [one, other] = attachmentsOfContainer(at.runtime, "web");
  expect(one).toMatchObject({
    netnsPath: "/run/netns/x",
    cniArgs: [["K", "V"]],
    capabilityArgs: { mac: "02:00:00:00:00:01", other: 1 },
  });
  expect(other).toMatchObject({ ifName: "eth1", netnsPath: "/run/netns/y", cniArgs: [], capabilityArgs: {} });
  cache({ cniArgs: undefined, capabilityArgs: undefined });
  expect(attachmentsOfContainer(at.runtime, "web")[0]).toMatchObject({ cniArgs: [], capabilityArgs: {} });
});

test("each plugin of the cached chain has what it would get now", () => {
  cache();
  const { cniArgs, plugins } = knownAttachments(at.runtime)[0]!.cached!;
  const common = { cniVersion: "1.1.0", name: "net", prevResult: result };
  expect(cniArgs).toBe("K=V");
  expect(plugins).toEqual([
    {
      type: "one",
      document: {
        ...common,
        type: "one",
        capabilities: { mac: true },
        runtimeConfig: { mac: "02:00:00:00:00:01" },
      },
    },
    { type: "two", document: { ...common, type: "two" } },
  ]);
});

test("a cached record without a result, or whose configuration cannot be read, has no chain", () => {
  const warnings: string[] = [];
  const chains = () =>
    whileWarning((message) => warnings.push(message), () => knownAttachments(at.runtime).map(({ cached }) => cached));
  cache({ result: undefined });
  expect([chains(), warnings]).toEqual([[], []]);
  for (const config of ["{", "[]", '{"name":"net","plugins":5}']) {
    cache({ config });
    expect(chains()).toEqual([]);
    expect(warnings.splice(0)).toEqual([
      expect.stringContaining("the cached configuration of eth0 of container web cannot be read: "),
    ]);
    expect(recordedNetwork(at.runtime, key)).toMatchObject({ name: "net", plugins: [] });
  }
});

test("the network of then is the list, or that of one plugin, or one without plugins where ledgers alone are left", () => {
  const types = () => recordedNetwork(at.runtime, key)?.plugins.map(({ type }) => type);
  expect(types()).toBeUndefined();
  recorded([made("thing a")], { ...key, containerId: "other" });
  expect(types()).toBeUndefined();
  recorded([made("thing a")], key);
  expect(types()).toEqual([]);
  expect(recordedNetwork(at.runtime, key)).toEqual({
    name: "net",
    cniVersion: "1.1.0",
    plugins: [],
    source: "",
    disableCheck: false,
    disableGC: false,
    loadOnlyInlinedPlugins: false,
  });
  cache();
  expect(types()).toEqual(["one", "two"]);
  cache({ config: JSON.stringify({ cniVersion: "1.1.0", name: "net", type: "three" }) });
  expect(types()).toEqual(["three"]);
  // A list may have a type of its own.
  cache({ config: JSON.stringify({ ...list, type: "x" }) });
  expect(types()).toEqual(["one", "two"]);
});
