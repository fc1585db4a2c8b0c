/**
 * Networks whose plugins are other programs: calls, environment and errors are those of the reference library.
 *
 * Longer than 300 lines: each verb's rules need the same script plugins.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { CniError } from "../../src/cni/error.ts";
import { recordFile } from "../../src/runtime/cache.ts";
import { addNetwork, checkNetwork, deleteNetwork, networkStatus } from "../../src/runtime/chain.ts";
import type { AttachmentRequest } from "../../src/runtime/plugin-call.ts";
import { collectGarbage } from "../../src/runtime/gc.ts";
import { type ScriptPlugins, scriptPlugins } from "../support/script-plugins.ts";
import { thrown } from "../support/outcome.ts";

let at: ScriptPlugins;
beforeEach(() => (at = scriptPlugins()));
afterEach(() => at[Symbol.dispose]());

const request: AttachmentRequest = {
  containerId: "ctr",
  netnsPath: "/run/netns/x",
  ifName: "eth0",
  cniArgs: [["IgnoreUnknown", "1"], ["K", "V"]],
  capabilityArgs: {},
};

const result = { cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24" }] };
const tryLater = { any: { stdout: { code: 11, msg: "try", details: "later" }, exit: 3 } };

const failure = (work: () => unknown): CniError => {
  const error = thrown(work);
  expect(error).toBeInstanceOf(CniError);
  return error as CniError;
};

const cacheFile = () => recordFile(at.runtime.cacheDirectory, { network: "net", ...request }).path;
const cached = () => JSON.parse(readFileSync(cacheFile(), "utf8"));
const putCache = (text: string) => {
  mkdirSync(`${at.runtime.cacheDirectory}/results`, { recursive: true });
  writeFileSync(cacheFile(), text);
};

describe("ADD", () => {
  test("runs the plugins in order, hands each result on, and caches the last", () => {
    at.plugin("one", { ADD: { stdout: result } });
    at.plugin("two", { ADD: { stdout: { ...result, dns: { domain: "d" } } } });
    const network = at.network(["one", "two"]);
    expect(addNetwork(at.runtime, network, request)?.result).toMatchObject({ dns: { domain: "d" } });
    expect(at.calls()).toEqual(["ADD one", "ADD two"]);
    expect(at.stdin("ADD one")).toEqual({ cniVersion: "1.1.0", name: "net", type: "one" });
    expect(at.stdin("ADD two")).toEqual({ cniVersion: "1.1.0", name: "net", type: "two", prevResult: result });
    expect(cached()).toMatchObject({
      kind: "cniCacheV1",
      networkName: "net",
      cniArgs: [["IgnoreUnknown", "1"], ["K", "V"]],
      result: { ...result, dns: { domain: "d" } },
    });
    expect(atob(cached().config)).toBe(network.source);
  });

  test("plugins get the six parameters and our environment, without Bun's variables", () => {
    at.plugin("one", { ADD: { stdout: result } });
    addNetwork(at.runtime, at.network(["one"]), request);
    const environment = at.environment("ADD one");
    expect(environment.filter((entry) => entry.startsWith("CNI_")).sort()).toEqual([
      "CNI_ARGS=IgnoreUnknown=1;K=V",
      "CNI_COMMAND=ADD",
      "CNI_CONTAINERID=ctr",
      "CNI_IFNAME=eth0",
      "CNI_NETNS=/run/netns/x",
      `CNI_PATH=${at.runtime.pluginPath}`,
    ]);
    expect(environment).toContain(`PATH=${process.env.PATH}`);
    expect(environment.filter((entry) => entry.startsWith("BUN_"))).toEqual([]);
  });

  test("a capability that is declared and supplied becomes runtimeConfig; what the file says otherwise stays", () => {
    at.plugin("one", { ADD: { stdout: result } });
    const plugin = {
      type: "one",
      capabilities: { ips: true, mac: true, bandwidth: false },
      runtimeConfig: { of: "file" },
      Name: "own",
    };
    const capabilityArgs = { ips: ["10.0.0.9/24"], bandwidth: {}, dns: {} };
    addNetwork(at.runtime, at.network([plugin]), { ...request, capabilityArgs });
    expect(at.stdin("ADD one")).toEqual({
      cniVersion: "1.1.0",
      name: "net",
      type: "one",
      Name: "own",
      capabilities: plugin.capabilities,
      runtimeConfig: { ips: ["10.0.0.9/24"] },
    });
    expect(cached().capabilityArgs).toEqual(capabilityArgs);
    addNetwork(at.runtime, at.network([plugin]), { ...request, ifName: "eth1" });
    expect(at.stdin("ADD one").runtimeConfig).toEqual({ of: "file" });
  });

  test("an empty object is a result", () => {
    at.plugin("one", { ADD: { stdout: "{}" } });
    expect(addNetwork(at.runtime, at.network(["one"]), request)?.result.cniVersion).toBe("1.1.0");
    expect(cached().result).toEqual({ cniVersion: "1.1.0" });
  });

  for (const stdout of ["", "[]", "no json", "{}{}"]) {
    test(`${JSON.stringify(stdout)} is no result`, () => {
      at.plugin("one", { ADD: { stdout } });
      expect(failure(() => addNetwork(at.runtime, at.network(["one"]), request)).message)
        .toStartWith('plugin type="one" failed (add): failed to unmarshal raw result: ');
      expect(existsSync(cacheFile())).toBe(false);
    });
  }

  test("a result in another version is printed, handed on and cached as it came", () => {
    const old = { cniVersion: "0.4.0", ips: [{ version: "4", address: "10.0.0.2/24" }], dns: {} };
    at.plugin("one", { ADD: { stdout: old } });
    at.plugin("two", { ADD: { stdout: old } });
    const network = at.network(["one", "two"]);
    expect(addNetwork(at.runtime, network, request)).toMatchObject({
      family: "0.3",
      result: { cniVersion: "0.4.0" },
    });
    expect(at.stdin("ADD two").prevResult).toEqual(old);
    expect(cached().result).toEqual(old);
    checkNetwork(at.runtime, network, request);
    expect(at.stdin("CHECK one").prevResult).toEqual(result);
  });

  test("a failure has the plugin's code, and the plugins that ran get DEL", () => {
    at.plugin("one", { ADD: { stdout: result } });
    at.plugin("two", tryLater);
    at.plugin("three");
    const network = at.network(["one", { type: "two", name: "second" }, "three"]);
    expect(failure(() => addNetwork(at.runtime, network, request)))
      .toMatchObject({ code: 11, message: 'plugin type="two" name="second" failed (add): try; later' });
    expect(at.calls()).toEqual(["ADD one", "ADD two", "DEL two", "DEL one"]);
    expect(at.stdin("DEL one").prevResult).toEqual(result);
    expect(existsSync(cacheFile())).toBe(false);
  });

  test("a second ADD that fails leaves the first attachment alone", () => {
    at.plugin("one", { ADD: { stdout: result } });
    const network = at.network(["one"]);
    addNetwork(at.runtime, network, request);
    const before = cached();
    at.plugin("one", tryLater);
    failure(() => addNetwork(at.runtime, network, request));
    expect(at.calls()).toEqual(["ADD one", "ADD one"]);
    expect(cached()).toEqual(before);
  });

  test("a result that cannot be cached fails ADD, and nothing stays attached", () => {
    at.plugin("one", { ADD: { stdout: result } });
    writeFileSync(at.runtime.cacheDirectory, "not a directory");
    expect(failure(() => addNetwork(at.runtime, at.network(["one"]), request)).message)
      .toStartWith('failed to set network "net" cached result: ');
    expect(at.calls()).toEqual(["ADD one", "DEL one"]);
  });

  test("identifiers are checked before anything is run", () => {
    at.plugin("one", { ADD: { stdout: result } });
    const network = at.network(["one"]);
    const add = (changes: Partial<AttachmentRequest>) =>
      failure(() => addNetwork(at.runtime, network, { ...request, ...changes })).message;
    expect(add({ containerId: "" })).toBe('plugin type="one" failed (add): missing containerID');
    expect(add({ containerId: "../x" })).toBe(
      'plugin type="one" failed (add): invalid characters in containerID; ../x',
    );
    expect(add({ ifName: "a/b" }))
      .toBe(
        'plugin type="one" failed (add): interface name contains / or : or whitespace characters; CNI_IFNAME is "a/b"',
      );
    expect(failure(() => addNetwork(at.runtime, at.network(["one"], { name: "a b" }), request)).message)
      .toBe('plugin type="one" failed (add): invalid characters found in network name; a b');
    expect(at.calls()).toEqual([]);
  });

  test("the error for a missing plugin has the directories that were searched", () => {
    const runtime = { ...at.runtime, pluginPath: `/nowhere:${at.runtime.pluginPath}` };
    expect(failure(() => addNetwork(runtime, at.network(["none"]), request)).message)
      .toBe(
        `plugin type="none" failed (add): failed to find plugin "none" in path [/nowhere ${at.runtime.pluginPath}]`,
      );
    expect(failure(() => addNetwork(runtime, at.network(["../bin/one"]), request)).message)
      .toBe('plugin type="../bin/one" failed (add): invalid plugin name: ../bin/one');
  });
});

describe("DEL", () => {
  const add = (plugins: string[], changes = {}) => {
    for (const type of plugins) at.plugin(type, { ADD: { stdout: { ...result, ...changes } } });
    const network = at.network(plugins, changes);
    addNetwork(at.runtime, network, request);
    return network;
  };

  test("runs the plugins backwards with the final result, and removes the record", () => {
    const network = add(["one", "two"]);
    deleteNetwork(at.runtime, network, request);
    expect(at.calls()).toEqual(["ADD one", "ADD two", "DEL two", "DEL one"]);
    expect(at.stdin("DEL one").prevResult).toEqual(result);
    expect(readdirSync(`${at.runtime.cacheDirectory}/results`)).toEqual([]);
  });

  test("goes on past plugins that fail, reports all errors, and keeps the record for the next try", () => {
    const network = add(["one", "two", "three"]);
    at.plugin("one", { DEL: { stderr: "broken", exit: 1 } });
    at.plugin("three", { DEL: { stdout: { code: 11, msg: "try", details: "later" }, exit: 3 } });
    expect(failure(() => deleteNetwork(at.runtime, network, request))).toMatchObject({
      code: 11,
      message: 'plugin type="three" failed (delete): try; later\n' +
        'plugin type="one" failed (delete): netplugin failed: "broken": exit status 1',
    });
    expect(at.calls().slice(3)).toEqual(["DEL three", "DEL two", "DEL one"]);
    expect(existsSync(cacheFile())).toBe(true);
    at.plugin("one", { DEL: { stderr: "" } });
    at.plugin("three", { DEL: { stdout: "" } });
    deleteNetwork(at.runtime, network, request);
    expect(existsSync(cacheFile())).toBe(false);
  });

  test("a plugin that is not there is an error after the others have run", () => {
    const network = add(["one", "two"]);
    expect(failure(() => deleteNetwork(at.runtime, at.network(["one", "none", "two"]), request)).message)
      .toStartWith('plugin type="none" failed (delete): failed to find plugin "none"');
    expect(at.calls().slice(2)).toEqual(["DEL two", "DEL one"]);
    deleteNetwork(at.runtime, network, request);
  });

  test("works without a record, twice, and with one that cannot be used", () => {
    at.plugin("one");
    const network = at.network(["one"]);
    for (
      const text of [
        undefined,
        "",
        '{"kind":"cniCache',
        '{"kind":"cniCacheV1","networkName":"other","containerId":"x","ifName":"y","config":""}',
        '{"kind":"cniCacheV1","networkName":"net","containerId":"ctr","ifName":"eth0","config":"","result":{"cniVersion":"9"}}',
      ]
    ) {
      if (text !== undefined) putCache(text);
      deleteNetwork(at.runtime, network, request);
      expect(at.stdin("DEL one").prevResult).toBeUndefined();
    }
    expect(at.calls().length).toBe(5);
  });

  test("a bare result in the file is used as one", () => {
    at.plugin("one");
    putCache('{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.0.0.2/24"}],"dns":{}}');
    deleteNetwork(at.runtime, at.network(["one"]), request);
    expect(at.stdin("DEL one").prevResult).toEqual(result);
    expect(existsSync(cacheFile())).toBe(false);
  });

  test("before 0.4.0 there is no prevResult, yet the record goes", () => {
    const network = add(["one"], { cniVersion: "0.3.1", ips: [{ version: "4", address: "10.0.0.2/24" }] });
    deleteNetwork(at.runtime, network, request);
    expect(at.stdin("DEL one")).toEqual({ cniVersion: "0.3.1", name: "net", type: "one" });
    expect(existsSync(cacheFile())).toBe(false);
  });

  test("the record of an attachment that shares the file's name stays", () => {
    at.plugin("one", { ADD: { stdout: result } });
    const mine = at.network(["one"], { name: "a" }), theirs = at.network(["one"], { name: "a-b" });
    addNetwork(at.runtime, mine, { ...request, containerId: "b-c" });
    deleteNetwork(at.runtime, theirs, { ...request, containerId: "c" });
    expect(readdirSync(`${at.runtime.cacheDirectory}/results`)).toEqual(["a-b-c-eth0"]);
  });
});

describe("CHECK", () => {
  test("runs the plugins in order with the final result; the first error is reported unchanged", () => {
    at.plugin("one", { ADD: { stdout: result } });
    at.plugin("two", { ADD: { stdout: result } });
    const network = at.network(["one", "two"]);
    addNetwork(at.runtime, network, request);
    checkNetwork(at.runtime, network, request);
    expect(at.calls().slice(2)).toEqual(["CHECK one", "CHECK two"]);
    expect(at.stdin("CHECK two").prevResult).toEqual(result);
    at.plugin("one", { CHECK: { stdout: { code: 11, msg: "try", details: "later" }, exit: 3 } });
    expect(failure(() => checkNetwork(at.runtime, network, request))).toMatchObject({
      code: 11,
      message: "try",
      details: "later",
    });
    expect(at.calls().length).toBe(5);
  });

  test("a version without CHECK is an error also where it is disabled; a disabled one runs nothing", () => {
    at.plugin("one");
    const old = at.network(["one"], { cniVersion: "0.3.1", disableCheck: true });
    expect(failure(() => checkNetwork(at.runtime, old, request)).message)
      .toBe('configuration version "0.3.1" does not support the CHECK command');
    checkNetwork(at.runtime, at.network(["one"], { disableCheck: "True" }), request);
    expect(at.calls()).toEqual([]);
  });

  test("without a record the plugins run without prevResult; with a torn one it fails", () => {
    at.plugin("one");
    const network = at.network(["one"]);
    checkNetwork(at.runtime, network, request);
    expect(at.stdin("CHECK one").prevResult).toBeUndefined();
    putCache("");
    expect(failure(() => checkNetwork(at.runtime, network, request)).message)
      .toStartWith('failed to get network "net" cached result: ');
    expect(existsSync(cacheFile())).toBe(true);
  });

  test("a result that the configuration's version of today cannot express says so", () => {
    at.plugin("one", { ADD: { stdout: result } });
    addNetwork(at.runtime, at.network(["one"]), request);
    expect(failure(() => checkNetwork(at.runtime, at.network(["one"], { cniVersion: "1.2.0" }), request)).message)
      .toBe(
        'failed to get network "net" cached result: failed to convert cached result to config version "1.2.0": ' +
          "no converter for CNI result version 1.1.0 to 1.2.0",
      );
  });
});

describe("GC", () => {
  const add = (ifName: string, network = at.network(["one", "two"])) =>
    addNetwork(at.runtime, network, { ...request, ifName });

  beforeEach(() => {
    at.plugin("one", { ADD: { stdout: result } });
    at.plugin("two", { ADD: { stdout: result } });
  });

  test("deletes what is not valid, with the arguments in the cache, then sends the plugins the valid list", () => {
    add("eth0");
    add("eth1");
    add("eth0", at.network(["one"], { name: "other" }));
    const stale: string[] = [];
    collectGarbage(
      at.runtime,
      at.network(["one", "two"]),
      { valid: [{ containerId: "ctr", ifName: "eth1" }] },
      (records) => {
        for (const { containerId, ifName } of records) stale.push(`${containerId}/${ifName}`);
      },
    );
    expect(stale).toEqual(["ctr/eth0"]);
    expect(at.calls().slice(5)).toEqual(["DEL two", "DEL one", "GC one", "GC two"]);
    expect(at.environment("DEL one")).toContain("CNI_NETNS=/run/netns/x");
    expect(at.environment("DEL one")).toContain("CNI_ARGS=IgnoreUnknown=1;K=V");
    const valid = [{ containerID: "ctr", ifname: "eth1" }];
    expect(at.stdin("GC one")).toEqual({
      cniVersion: "1.1.0",
      name: "net",
      type: "one",
      "cni.dev/valid-attachments": valid,
      "cni.dev/attachments": valid,
    });
    expect(at.environment("GC one")).toEqual(
      expect.arrayContaining(["CNI_CONTAINERID=", "CNI_NETNS=", "CNI_IFNAME="]),
    );
    expect(readdirSync(`${at.runtime.cacheDirectory}/results`).sort()).toEqual(["net-ctr-eth1", "other-ctr-eth0"]);
  });

  test("every plugin runs, and every failure has its line", () => {
    add("eth0");
    at.plugin("one", { ...tryLater });
    at.plugin("two", { ...tryLater });
    expect(failure(() => collectGarbage(at.runtime, at.network(["one", "two"]), { valid: [] })).message.split("\n"))
      .toEqual([
        'failed to delete stale attachment ctr eth0: plugin type="two" failed (delete): try; later',
        'plugin type="one" failed (delete): try; later',
        "failed to GC plugin one: try; later",
        "failed to GC plugin two: try; later",
      ]);
  });

  test("before 1.1.0 plugins do not get GC", () => {
    add("eth0", at.network(["one"], { cniVersion: "1.0.0" }));
    collectGarbage(at.runtime, at.network(["one"], { cniVersion: "1.0.0" }), { valid: [] });
    expect(at.calls().slice(1)).toEqual(["DEL one"]);
  });

  test("disabled, it does nothing at all", () => {
    add("eth0");
    collectGarbage(at.runtime, at.network(["one"], { disableGC: true }), { valid: [] });
    expect(at.calls().length).toBe(2);
    expect(readdirSync(`${at.runtime.cacheDirectory}/results`)).toEqual(["net-ctr-eth0"]);
  });

  test("a cache that cannot be read is an error, not an empty cache", () => {
    mkdirSync(at.runtime.cacheDirectory);
    writeFileSync(`${at.runtime.cacheDirectory}/results`, "");
    expect(failure(() => collectGarbage(at.runtime, at.network(["one"]), { valid: [] })).message)
      .toStartWith("cannot list cached attachments: ");
  });
});

describe("STATUS", () => {
  test("runs the plugins in order, and the first error keeps its code", () => {
    at.plugin("one");
    at.plugin("two", { any: { stdout: { code: 50, msg: "not now" }, exit: 1 } });
    at.plugin("three");
    expect(failure(() => networkStatus(at.runtime, at.network(["one", "two", "three"]))))
      .toMatchObject({ code: 50, message: "not now" });
    expect(at.calls()).toEqual(["STATUS one", "STATUS two"]);
    expect(at.stdin("STATUS one")).toEqual({ cniVersion: "1.1.0", name: "net", type: "one" });
  });

  test("a network older than the verb is ready", () => {
    at.plugin("one");
    for (const cniVersion of ["1.0.0", "", "x"]) networkStatus(at.runtime, at.network(["one"], { cniVersion }));
    expect(at.calls()).toEqual([]);
  });
});
