/** Sessions: what is opened and kept, whom a verb is passed on to, and what a call sees. */
import { beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { PluginConfig, PluginDefinition } from "../../src/contract/plugin.ts";
import { openSession } from "../../src/engine/run.ts";
import { endCall } from "../../src/process/calls.ts";
import {
  asked,
  benchForEachTest,
  callOf,
  containers,
  containerWith,
  hostWith,
  made,
  NETNS,
  opens,
  owner,
  pluginOf,
  plugins,
  recorded,
  resultWith,
  type Run,
  run,
} from "../support/engine-bench.ts";

const bench = benchForEachTest();
beforeEach(() => containers[NETNS] = containerWith({}));

const OTHER = "/run/netns/y";

describe("what is opened", () => {
  const plugin = pluginOf([made("thing a")]);

  test("is closed after each verb, also after one that fails", () => {
    const session = openSession();
    session.runVerb(plugin, callOf("ADD"));
    session.runVerb(plugin, callOf("DEL"));
    expect(() => session.runVerb(pluginOf([made("thing a", { fails: { apply: "now" } })]), callOf("ADD"))).toThrow();
    expect(opens).toEqual([1, 2, 3].flatMap(() => [`open ${NETNS}`, `close ${NETNS}`]));
  });

  test("stays for the next verbs of a session that keeps it, until that is closed", () => {
    const session = openSession({ keepsOpen: true });
    for (const command of ["ADD", "DEL"] as const) session.runVerb(plugin, callOf(command));
    containers[OTHER] = containerWith({});
    session.runVerb(plugin, callOf("ADD", {}, { netnsPath: OTHER }));
    session.close();
    session.close();
    session.runVerb(plugin, callOf("DEL"));
    expect(opens).toEqual([
      `open ${NETNS}`,
      `release ${NETNS}`,
      `release ${NETNS}`,
      `open ${OTHER}`,
      `close ${OTHER}`,
      `close ${NETNS}`,
      `open ${NETNS}`,
      `release ${NETNS}`,
    ]);
  });

  test("without the container serves those who can do without it, and no others", () => {
    const session = openSession({ keepsOpen: true });
    delete containers[NETNS];
    session.runVerb(plugin, callOf("DEL"));
    containers[NETNS] = containerWith({});
    asked.length = 0;
    session.runVerb(plugin, callOf("DEL"));
    session.runVerb(plugin, callOf("ADD"));
    session.runVerb(plugin, callOf("DEL"));
    expect(asked).toEqual([
      "remove thing a restated outside",
      "apply thing a",
      "remove thing a outside",
      "remove thing a restated outside",
    ]);
    expect(opens.filter((line) => line.startsWith("open"))).toHaveLength(2);
  });

  test("serves the plugins that a plugin calls", () => {
    plugins["pool"] = pluginOf([made("thing pool")], {
      name: "pool",
      add(at) {
        at.applyAll([made("thing pool")]);
        return { cniVersion: "1.1.0", ips: [{ address: "10.0.0.9/24" }] };
      },
    });
    const outer = pluginOf([], { add: (at) => at.ipam()!.add() });
    const result = openSession().runVerb(outer, callOf("ADD", { ipam: { type: "pool" } }));
    expect(result).toEqual({ cniVersion: "1.1.0", ips: [{ address: "10.0.0.9/24" }] });
    openSession().runVerb(outer, callOf("DEL", { ipam: { type: "pool" } }));
    expect(asked).toEqual(["apply thing pool", "remove thing pool", "remove thing pool restated"]);
    expect(opens).toHaveLength(4);
  });
});

describe("GC and STATUS are passed on", () => {
  const saying = (name: string): PluginDefinition<PluginConfig> =>
    plugins[name] = pluginOf([], { name, status: (conf) => void asked.push(`${name} ${JSON.stringify(conf)}`) });
  const status = (conf: Record<string, unknown>, plugin: Run["plugin"] = {}) =>
    run("STATUS", [], { conf, plugin }).map((line) => line.replace(/^(\S+) .*"type":"(\w+)".*/, "$1 as $2"));

  test("to the IPAM plugin, which is not the plugin itself", () => {
    saying("pool");
    plugins["test"] = saying("test");
    expect(status({ ipam: { type: "pool" } })).toEqual(["pool as pool"]);
    for (const ipam of [undefined, {}, { type: "" }, { type: "test" }, { type: "my-test" }]) {
      expect(status({ ipam })).toEqual([]);
    }
  });

  test("to the plugin that this one delegates to, with what is valid", () => {
    saying("pool");
    const valid = [{ containerID: "a", ifname: "eth0" }];
    const seen: unknown[] = [];
    plugins["other"] = pluginOf([], {
      name: "other",
      validate: (conf) => {
        seen.push(conf);
        return conf as PluginConfig;
      },
    });
    const conf = { cniVersion: "1.1.0", name: "theirs" };
    const plugin: Run["plugin"] = { passedOn: () => ({ type: "other", conf }) };
    expect(run("GC", [], { conf: { ipam: { type: "pool" }, "cni.dev/valid-attachments": valid }, plugin })).toEqual(
      [],
    );
    expect(seen).toEqual([{ ...conf, "cni.dev/valid-attachments": valid }]);
    expect(run("STATUS", [], { conf: { ipam: { type: "pool" } }, plugin: { passedOn: () => undefined } })).toEqual(
      [],
    );
  });
});

describe("verbs and versions", () => {
  const gc = { conf: { cniVersion: "1.0.0", "cni.dev/valid-attachments": [] } };

  test("a network that is older than GC has none, unless the session is for every version", () => {
    expect(run("GC", [], gc)).toEqual([expect.stringContaining("not allow")]);
    expect(run("GC", [], { ...gc, options: { inEveryVersion: true } })).toEqual([]);
  });

  test("another program gets no GC of a network that is older", () => {
    mkdirSync(`${bench.directory}/bin`);
    const program = `${bench.directory}/bin/foreign`, log = `${bench.directory}/log`;
    writeFileSync(program, `#!/bin/sh\necho $CNI_COMMAND >>${log}\n`);
    chmodSync(program, 0o755);
    writeFileSync(log, "");
    const call = (cniVersion: unknown) => callOf("GC", { cniVersion }, { path: `${bench.directory}/bin` });
    const calls = (options: Run["options"], cniVersion: unknown) => {
      writeFileSync(log, "");
      openSession(options).delegate("foreign", call(cniVersion));
      return readFileSync(log, "utf8");
    };
    expect(calls({ inEveryVersion: true }, "1.0.0")).toBe("");
    expect(calls({ inEveryVersion: true }, undefined)).toBe("");
    expect(calls({ inEveryVersion: true }, "1.1.0")).toBe("GC\n");
    expect(calls({}, "1.0.0")).toBe("GC\n");
  });

  test("a verb that nobody knows, and a configuration that is none", () => {
    const unknown = () => openSession().runVerb(pluginOf([]), callOf("NOPE" as "ADD"));
    expect(unknown).toThrow(expect.objectContaining({ code: 4, message: "unknown CNI_COMMAND: NOPE" }));
    expect(() => openSession().runVerb(pluginOf([]), callOf("ADD", {}, { stdin: "[]" }))).toThrow(
      expect.objectContaining({ code: 7, message: "the network configuration must be a JSON object" }),
    );
  });
});

describe("a plugin that is called with another configuration", () => {
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name: "theirs", type: "other" });
  const prevResult = resultWith("veth1");
  const seen: unknown[] = [];
  const calls = (command: "ADD" | "DEL", text: string | undefined, conf: Record<string, unknown>) => {
    seen.length = 0;
    plugins["other"] = pluginOf([], {
      name: "other",
      validate(document) {
        seen.push(document);
        return document as PluginConfig;
      },
      ...command === "DEL" && { add: () => ({ cniVersion: "1.1.0" }) },
    });
    const plugin = pluginOf([], {
      status: (_, host) => void host.delegate("other", command, text),
    });
    openSession().runVerb(plugin, callOf("STATUS", conf));
    return seen[0];
  };

  test("gets the result of ADD that this call brings, but for ADD", () => {
    expect(calls("DEL", stdin, { prevResult })).toEqual({ ...JSON.parse(stdin), prevResult });
    expect(calls("ADD", stdin, { prevResult })).toEqual(JSON.parse(stdin));
    expect(calls("DEL", stdin, {})).toEqual(JSON.parse(stdin));
    expect(calls("DEL", undefined, { prevResult })).toEqual(JSON.parse(callOf("DEL", { prevResult }).stdin));
  });
});

test("a call sees the host that is open, and the ledgers of others", () => {
  const opened = {
    ...hostWith(containers[NETNS]),
    useShared: () => void asked.push("shared"),
    isAloneWithShared: () => true,
  };
  const host = openSession().hostOf(opened, callOf("ADD"));
  expect(host.route).toBe(opened.route);
  expect(host.netfilter).toBe(opened.netfilter);
  expect([host.cookie, host.container]).toEqual([opened.cookie, opened.container]);
  host.useShared();
  expect(asked).toEqual(["shared"]);
  expect(host.isAloneWithShared()).toBe(true);
  expect(host.withoutContainer().container).toBeUndefined();
  expect(() => host.requirePlugin("nobody's")).toThrow("no paths provided");

  recorded([made("thing own")], { netnsPath: "/proc/self/ns/net" });
  recorded([made("thing theirs")], { containerId: "other", netnsPath: "/proc/self/ns/net" });
  const theirs = [{ name: "theirs" }];
  expect([host.recordedByOthers("thing", owner), host.claimedByOthers("thing", owner)]).toEqual([theirs, theirs]);
});

test("a verb is traced with its attachment, and so is each thing", () => {
  const file = `${bench.directory}/trace`;
  process.env.PATCHBAY_TRACE = file;
  try {
    endCall();
    run("ADD", [made("thing a")]);
  } finally {
    delete process.env.PATCHBAY_TRACE;
    endCall();
  }
  const lines = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  expect(lines.map(({ operation }) => operation)).toEqual(["apply", "verb"]);
  for (const line of lines) expect(line).toMatchObject({ ...owner, verb: "ADD", plugin: "test" });
});
