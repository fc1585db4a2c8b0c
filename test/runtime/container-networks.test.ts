/** Deleting what is recorded of a container: with which configuration, in which order, and what is said once. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { CniError, errorText } from "../../src/cni/error.ts";
import { whileWarning } from "../../src/process/warn.ts";
import { addNetwork } from "../../src/runtime/chain.ts";
import { UnknownNetworkError } from "../../src/runtime/conf/load.ts";
import {
  attachAllOrNone,
  deleteAllRecorded,
  deleteRecorded,
  deletionOf,
} from "../../src/runtime/container-networks.ts";
import type { Runtime } from "../../src/runtime/plugin-call.ts";
import { attachmentsOfContainer } from "../../src/runtime/records.ts";
import {
  asked,
  type Bench,
  containers,
  containerWith,
  made,
  NETNS,
  openBench,
  pluginOf,
  plugins,
  recorded,
} from "../support/engine-bench.ts";
import { type ScriptPlugins, scriptPlugins } from "../support/script-plugins.ts";
import { textThrown } from "../support/outcome.ts";

let at: ScriptPlugins, bench: Bench;
beforeEach(() => {
  at = scriptPlugins();
  bench = openBench();
  containers[NETNS] = containerWith({});
  at.plugin("one", { ADD: { stdout: { cniVersion: "1.1.0", ips: [] } } });
});
afterEach(() => {
  bench[Symbol.dispose]();
  at[Symbol.dispose]();
});

const request = { containerId: "web", netnsPath: NETNS, ifName: "eth0", cniArgs: [], capabilityArgs: {} };
const key = { network: "net", containerId: "web", ifName: "eth0" };
const dels = () => at.calls().filter((call) => call.startsWith("DEL"));

describe("the configuration of a deletion", () => {
  const asConfigured = () => ({ network: at.network([{ type: "one", mark: "today" }]), request });
  const deletion = (how = asConfigured, runtime: Runtime = at.runtime) => {
    const said: string[] = [];
    const { network } = whileWarning(
      (message) => said.push(message),
      () => deletionOf(runtime, attachmentsOfContainer(runtime, "web")[0]!, how),
    );
    return [network.name, network.plugins.map(({ config }) => config["mark"]), said];
  };
  const failing = (error: Error) => () => {
    throw error;
  };

  test("is that of ADD where it is cached, and today's where it is not", () => {
    recorded([made("thing a")], key);
    expect(deletion()).toEqual(["net", ["today"], []]);
    addNetwork(at.runtime, at.network([{ type: "one", mark: "then" }]), request);
    expect(deletion()).toEqual(["net", ["then"], []]);
  });

  test("is today's where the cached one has no plugins", () => {
    addNetwork(at.runtime, { ...at.network(["one"]), source: '{"cniVersion":"1.1.0","name":"net"}' }, request);
    expect(deletion()).toEqual(["net", ["today"], []]);
  });

  test("is that of ledgers where there is none today, with a warning unless nobody has the network", () => {
    recorded([made("thing a")], key);
    expect(deletion(failing(new UnknownNetworkError(7, "no net configuration")))).toEqual(["net", [], []]);
    expect(deletion(failing(new CniError(7, "it is broken", "at its end")))).toEqual(["net", [], [
      "network net cannot be read, and what is recorded of it is undone: it is broken; at its end",
    ]]);
  });
});

describe("a deletion", () => {
  const failure = (network = at.network(["one"])) =>
    textThrown(() => deleteRecorded(at.runtime, { network, request }));

  test("calls the network's plugins, and ours that have a ledger, the last one first", () => {
    for (const name of ["a", "b"]) {
      plugins[name] = pluginOf([], { name });
      recorded([made(`thing ${name}`)], { ...key, plugin: name });
    }
    recorded([made("thing other")], { ...key, ifName: "eth1", plugin: "a" });
    recorded([made("thing unknown")], { ...key, plugin: "of-tomorrow" });
    expect(failure()).toBe("");
    expect([dels(), asked]).toEqual([["DEL one"], ["remove thing b", "remove thing a"]]);
  });

  test("tells what fails in both, and what is said already once", () => {
    at.plugin("one", { DEL: { stdout: { code: 11, msg: "cannot remove a" }, exit: 1 } });
    for (const name of ["a", "b"]) {
      plugins[name] = pluginOf([], { name });
      recorded([made(`thing ${name}`, { fails: { remove: "now" } })], { ...key, plugin: name });
    }
    expect(failure()).toBe('plugin type="one" failed (delete): cannot remove a\ncannot remove b');
  });

  test("locks the directory that the plugin's own caller locks, where it is there", () => {
    const locked = `${at.directory}/locked`;
    plugins["a"] = pluginOf([], {
      name: "a",
      lockedDirectory: ({ name }) => (asked.push(`lock of ${name}`), locked),
    });
    for (const make of [() => {}, () => mkdirSync(locked)]) {
      make();
      recorded([made("thing a")], { ...key, plugin: "a" });
      expect(failure()).toBe("");
      expect(asked.splice(0)).toEqual(["lock of net", "remove thing a"]);
    }
  });
});

test("of several, eth10 goes before eth2, and each failure names its network", () => {
  at.plugin("one", { DEL: { stdout: { code: 11, msg: "stuck" }, exit: 1 } });
  const deletions = ["eth2", "lo", "eth10"].map((ifName) => ({
    network: at.network(["one"]),
    request: { ...request, ifName },
  }));
  expect(deleteAllRecorded(at.runtime, deletions).map(errorText)).toEqual(
    ["lo", "eth10", "eth2"].map((ifName) =>
      `${ifName} of container web cannot be detached from network net: plugin type="one" failed (delete): stuck`
    ),
  );
});

describe("all or none", () => {
  const attach = (failing: string, finish: (attached: readonly string[]) => void = () => {}, stuck = "") => {
    const steps: string[] = [];
    try {
      const attached = attachAllOrNone(["a", "b", "c"], {
        attach(name) {
          steps.push(`attach ${name}`);
          if (name === failing) throw new Error(`no ${name}`);
          return name.toUpperCase();
        },
        takeBack(name) {
          steps.push(`take back ${name}`);
          if (name === stuck) throw new Error(`${name} stuck`);
        },
        finish,
        errorOf: (error, notTakenBack) => new Error([error, ...notTakenBack].map(errorText).join("; ")),
      });
      return [...steps, ...attached];
    } catch (error) {
      return [...steps, errorText(error)];
    }
  };

  test("attached are all, or those before the failure are taken back in reverse", () => {
    const all = ["attach a", "attach b", "attach c"];
    expect(attach("")).toEqual([...all, "A", "B", "C"]);
    expect(attach("c", undefined, "b")).toEqual([...all, "take back b", "take back a", "no c; b stuck"]);
    const refuse = (attached: readonly string[]) => {
      throw new Error(`not ${attached}`);
    };
    expect(attach("", refuse)).toEqual([...all, "take back c", "take back b", "take back a", "not A,B,C"]);
  });
});
