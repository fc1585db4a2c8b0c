/** GC of a network: which attachments are stale by which choice, and that nothing of what was attached since is touched. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import type { LedgerHeader } from "../../src/engine/ledger/record.ts";
import { recordFile } from "../../src/runtime/cache.ts";
import { addNetwork } from "../../src/runtime/chain.ts";
import { collectGarbage, type Keep, staleAttachments, unconfiguredNetwork } from "../../src/runtime/gc.ts";
import { attachmentsToNetwork } from "../../src/runtime/records.ts";
import { containers, containerWith, made, recorded, replacedHosts } from "../support/engine-bench.ts";
import { type ScriptPlugins, scriptPlugins } from "../support/script-plugins.ts";
import { textThrown } from "../support/outcome.ts";

let at: ScriptPlugins;
beforeEach(() => {
  at = scriptPlugins();
  replacedHosts.begin();
  containers["/run/netns/alive"] = containerWith({ eth0: MAC }, { cookie: "1", netnsPath: "/run/netns/alive" });
  at.plugin("one", { ADD: { stdout: { cniVersion: "1.1.0", ips: [] } } });
});
afterEach(() => {
  replacedHosts.end();
  delete containers["/run/netns/alive"];
  at[Symbol.dispose]();
});

const MAC = "02:00:00:00:00:0a";
const network = () => at.network([{ type: "one", mark: "today" }]);
/** Cached by this runtime, with a configuration of then. */
const add = (containerId: string, netnsPath: string, ifName = "eth0", name = "net") => {
  const request = { containerId, netnsPath, ifName, cniArgs: [], capabilityArgs: {} };
  addNetwork(at.runtime, at.network([{ type: "one", mark: "then" }], { name }), request);
};
const ledger = (containerId: string, netnsPath: string, more: Partial<LedgerHeader> = {}) =>
  recorded([made("thing a")], { containerId, netnsPath, netns: "1", plugin: "foreign", ...more });
const stale = (keep: Keep) =>
  staleAttachments(at.runtime, network(), keep).map(({ containerId, ifName }) => `${containerId} ${ifName}`).sort();
const later = () => at.calls().filter((call) => !call.startsWith("ADD"));

describe("stale is", () => {
  beforeEach(() => {
    add("cached-gone", "/run/netns/gone");
    add("cached-alive", "/run/netns/alive");
    ledger("gone", "/run/netns/gone");
    ledger("alive", "/run/netns/alive");
    ledger("elsewhere", "/run/netns/gone", { hostNetns: "another" });
    ledger("nowhere", "");
    ledger("other", "/run/netns/gone", { network: "other" });
  });

  test("what is not named, by container and interface", () => {
    const valid = [{ containerId: "gone", ifName: "eth0" }, { containerId: "alive", ifName: "eth1" }];
    expect(stale({ valid })).toEqual([
      "alive eth0",
      "cached-alive eth0",
      "cached-gone eth0",
      "elsewhere eth0",
      "nowhere eth0",
    ]);
  });

  test("what the cache has", () => expect(stale("uncached")).toEqual(["cached-alive eth0", "cached-gone eth0"]));

  test("whose namespace is gone", () => expect(stale("live")).toEqual(["cached-gone eth0", "gone eth0"]));
});

test("of the gone ones plugins get no namespace, and are not sent GC", () => {
  add("gone", "/run/netns/gone");
  collectGarbage(at.runtime, network(), "live");
  expect(later()).toEqual(["DEL one"]);
  expect(at.environment("DEL one")).toContain("CNI_NETNS=");
  expect(at.stdin("DEL one")["mark"]).toBe("today");
  expect(attachmentsToNetwork(at.runtime, "net")).toEqual([]);
});

test("where what the cache has not is kept, plugins get GC without a list", () => {
  add("cached", "/run/netns/alive");
  ledger("uncached", "/run/netns/gone");
  collectGarbage(at.runtime, network(), "uncached");
  expect(later()).toEqual(["DEL one", "GC one"]);
  expect(at.environment("DEL one")).toContain("CNI_NETNS=/run/netns/alive");
  expect(at.stdin("GC one")).toEqual({ cniVersion: "1.1.0", name: "net", type: "one", mark: "today" });
  expect(attachmentsToNetwork(at.runtime, "net").map(({ containerId }) => containerId)).toEqual(["uncached"]);
});

describe("between the judgement and the deletion", () => {
  const failure = (meanwhile: () => void) =>
    textThrown(() => collectGarbage(at.runtime, network(), "live", meanwhile));

  test("what was attached again stays, and is told", () => {
    add("web", "/run/netns/gone");
    expect(failure(() => ledger("web", "/run/netns/gone"))).toBe("eth0 of container web stays: it is attached again");
    expect(later()).toEqual([]);
  });

  test("what was deleted needs nothing", () => {
    add("web", "/run/netns/gone");
    add("second", "/run/netns/gone");
    const file = recordFile(at.runtime.cacheDirectory, { network: "net", containerId: "web", ifName: "eth0" }).path;
    expect(failure(() => rmSync(file))).toBe("");
    expect(later()).toEqual(["DEL one"]);
    expect(at.environment("DEL one")).toContain("CNI_CONTAINERID=second");
  });

  test("another interface, and another network, of the container are of no account", () => {
    ledger("web", "/run/netns/gone", { ifName: "eth7", plugin: "aaa", hostNetns: "another" });
    add("web", "/run/netns/alive", "eth0", "alpha");
    add("web", "/run/netns/alive", "eth", "net");
    add("web", "/run/netns/gone");
    expect(failure(() => ledger("web", "/run/netns/gone", { ifName: "eth7", plugin: "bbb" }))).toBe("");
    expect(later()).toEqual(["DEL one"]);
  });
});

test("a network that is not configured is known by its records, and what they say is deleted", () => {
  expect(unconfiguredNetwork(at.runtime, "net")).toBeUndefined();
  add("web", "/run/netns/gone");
  const unconfigured = unconfiguredNetwork(at.runtime, "net")!;
  expect(unconfigured.plugins).toEqual([]);
  collectGarbage(at.runtime, unconfigured, { valid: [] });
  expect([later(), at.stdin("DEL one")["mark"]]).toEqual([["DEL one"], "then"]);
  expect(unconfiguredNetwork(at.runtime, "net")).toBeUndefined();
});
