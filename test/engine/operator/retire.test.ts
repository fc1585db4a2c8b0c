/** `network remove`: what of a network without attachments is retired, collected and swept, and in which order. */
import { beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { errorText } from "../../../src/cni/error.ts";
import type { Host } from "../../../src/contract/host.ts";
import type { PluginConfig, PluginDefinition } from "../../../src/contract/plugin.ts";
import type { Retirement } from "../../../src/contract/resource.ts";
import type { KnownAttachment } from "../../../src/engine/operator/known-attachment.ts";
import { listAttachments } from "../../../src/engine/operator/known-attachment.ts";
import { collectOutside, networkUpon, removeSharedParts, sweepNetwork } from "../../../src/engine/operator/retire.ts";
import {
  asked,
  benchForEachTest,
  hostWith,
  made,
  NETNS,
  owner,
  pluginOf,
  plugins,
  recorded,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

const host = hostWith(undefined) as Host;
const configured = (type: string, conf: Record<string, unknown> = {}) => ({
  type,
  document: { cniVersion: "1.1.0", name: "net", type, ...conf },
});
const how: Omit<Retirement, "before"> = {
  network: "net",
  isDryRun: true,
  mayRelease: () => true,
  networkUpon: () => undefined,
};

describe("what is retired", () => {
  const retired = (...list: ReturnType<typeof configured>[]) =>
    removeSharedParts(list, how, "", host).map(({ what }) => what).filter((what) => /of net/.test(what));

  test("all things of a kind at once, whatever options say today; then what plugins keep themselves", () => {
    plugins["a"] = pluginOf([], {
      name: "a",
      add(at) {
        expect([at.purpose, at.prevResult, at.containerId]).toEqual(["undo", undefined, ""]);
        at.applyAll([made("shared one"), made("thing x")]);
        return { cniVersion: "" };
      },
      retire: ({ type }, { before }) => [{ what: `plugin ${type} of net after ${before.length}` }],
    });
    plugins["b"] = pluginOf([made("shared two")], { name: "b" });
    expect(retired(configured("a"), configured("b"))).toEqual([
      expect.stringMatching(/^shared of net: one,two after \d+$/),
      expect.stringMatching(/^plugin a of net after [1-9]\d*$/),
    ]);
  });

  test("of plugins with a record of their own, of what is refused and of foreign ones there is nothing to restate", () => {
    const refuses = (): never => {
      throw new Error("refused");
    };
    const retire = () => [{ what: "of net, by a plugin" }];
    plugins["leases"] = pluginOf([made("shared leases")], { name: "leases", del: () => {}, retire });
    plugins["refused"] = pluginOf([made("shared refused")], { name: "refused", validate: refuses, retire });
    plugins["broken"] = pluginOf([made("shared broken")], { name: "broken", add: refuses, retire });
    const list = ["leases", "refused", "broken", "foreign"].map((type) => configured(type));
    expect(retired(...list)).toEqual([
      expect.stringMatching(/^shared of net: {2}after/),
      "of net, by a plugin",
      "of net, by a plugin",
    ]);
  });

  test("of the IPAM plugin, too, and of the plugin that another one delegates to", () => {
    const one = (name: string, more: Partial<PluginDefinition<PluginConfig>> = {}) =>
      plugins[name] = pluginOf([made(`shared ${name}`)], { name, ...more });
    const told = (...list: ReturnType<typeof configured>[]) =>
      retired(...list)[0]!.replace(/^.*net: | after.*$/g, "");
    one("main");
    one("pool");
    one("front", {
      passedOn: () => ({ type: "main", conf: configured("main", { ipam: { type: "pool" } }).document }),
    });
    one("quiet", { passedOn: () => undefined });
    expect(told(configured("main", { ipam: { type: "pool" } }))).toBe("main,pool");
    expect(told(configured("front", { ipam: { type: "quiet" } }))).toBe("front,main,pool");
    expect(told(configured("quiet", { ipam: { type: "pool" } }))).toBe("quiet,pool");
    for (const ipam of [undefined, {}, "pool", { type: "" }, { type: 5 }, { type: "main" }]) {
      expect(told(configured("main", { ipam }))).toBe("main");
    }
  });
});

describe("what is collected and swept", () => {
  const failing = (name: string) => ({
    [name]: () => {
      asked.push(name);
      throw new Error(`${name} failed`);
    },
  });
  const texts = (failures: unknown[]) => failures.map(errorText);

  test("every plugin's own, though one fails; but not of those that list it for the operator first", () => {
    plugins["a"] = pluginOf([], { name: "a", ...failing("gc"), sweeps: ["thing"] });
    plugins["b"] = pluginOf([], { name: "b", gc: ({ name }) => void asked.push(`gc of ${name}`) });
    plugins["c"] = pluginOf([], { name: "c", ...failing("gc"), retire: () => [] });
    const list = ["a", "b", "c"].map((type) => configured(type));
    expect(texts(collectOutside("net", list, "", host))).toEqual(["gc failed"]);
    expect(asked.splice(0)).toEqual(["gc", "gc of net"]);
    expect(texts(sweepNetwork("net", list, "", host))).toEqual([]);
    expect(asked.splice(0)).toEqual(["sweep  of thing net outside"]);
  });

  test("what has a ledger by now stays", () => {
    recorded([made("thing a")], { containerId: "a" });
    recorded([made("thing a")], { containerId: "b", network: "other" });
    const seen: string[] = [];
    plugins["p"] = pluginOf([], {
      name: "p",
      gc: (_, isValid) => {
        for (const containerId of ["a", "b"]) {
          for (const ifName of [undefined, "eth0", "eth1"]) {
            if (isValid({ containerId, ...ifName !== undefined && { ifName } })) {
              seen.push(`${containerId} ${ifName}`);
            }
          }
        }
      },
      sweeps: ["thing"],
    });
    expect(collectOutside("net", [configured("p")], "", host)).toEqual([]);
    expect(seen).toEqual(["a undefined", "a eth0"]);
    expect(sweepNetwork("net", [configured("p")], "", host)).toEqual([]);
    expect(asked).toEqual(["sweep a of thing net outside"]);
  });

  describe("of another program", () => {
    const log = () => `${bench.directory}/log`, path = () => `${bench.directory}/bin`;
    const calls = () => Bun.file(log()).text().catch(() => "");
    beforeEach(() => {
      mkdirSync(path());
      writeFileSync(`${path()}/p`, `#!/bin/sh\necho "$CNI_COMMAND $(cat)" >>${log()}\n`);
      chmodSync(`${path()}/p`, 0o755);
      plugins["p"] = pluginOf([], { name: "p", ...failing("gc"), sweeps: ["thing"] });
    });

    test("GC is called, with no attachment that is valid", async () => {
      expect(collectOutside("net", [configured("p")], path(), host)).toEqual([]);
      const [verb, document] = (await calls()).split(/ (.*)/);
      expect(verb).toBe("GC");
      expect(JSON.parse(document!)).toEqual({ ...configured("p").document, "cni.dev/valid-attachments": [] });
      expect(sweepNetwork("net", [configured("p")], path(), host)).toEqual([]);
      expect(asked).toEqual([]);
    });

    test("of a network that is older than the verb it is not", async () => {
      expect(collectOutside("net", [configured("p", { cniVersion: "1.0.0" })], path(), host)).toEqual([]);
      expect(await calls()).toBe("");
    });

    test("which is not found, it fails where nobody else knows the plugin", () => {
      expect(texts(collectOutside("net", [configured("q")], path(), host))).toEqual([
        expect.stringContaining('failed to find plugin "q"'),
      ]);
      plugins["r"] = pluginOf([], { name: "r", gc: () => void asked.push("gc of r"), sweeps: ["link"] });
      expect(collectOutside("net", [configured("r")], path(), host)).toEqual([]);
      expect(sweepNetwork("net", [configured("r")], path(), host)).toEqual([]);
      expect(asked).toEqual(["gc of r", "sweep  of link net outside"]);
    });
  });
});

describe("another network whose container is upon a link", () => {
  const known = (document: Record<string, unknown>): KnownAttachment => ({
    ...owner,
    network: "cached",
    netnsPath: NETNS,
    names: [],
    ledgers: [],
    cached: { ...owner, netnsPath: NETNS, cniArgs: "", plugins: [{ type: "p", document }] },
  });

  test("is told by its ledger", () => {
    recorded([made("thing a"), made("upon b", { master: "eth7" }), made("upon c", { master: "eth8" })]);
    const list = listAttachments();
    expect(["eth7", "eth8", "eth9"].map((link) => networkUpon(link, list))).toEqual(["net", "net", undefined]);
  });

  test("or by its configuration, unless that means a link in the container", () => {
    const rows: [document: Record<string, unknown>, found: boolean][] = [
      [{ master: "eth7" }, true],
      [{ Master: "eth7", linkInContainer: false }, true],
      [{ master: "eth7", linkInContainer: true }, false],
      [{ master: "eth8" }, false],
      [{}, false],
    ];
    for (const [document, found] of rows) {
      expect(networkUpon("eth7", [known(document)])).toBe(found ? "cached" : undefined);
    }
  });
});
