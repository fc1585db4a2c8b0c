/** Where a lease stands in the list of an attachment, for ADD and for who restates it; and what ADD says of what it cannot do. */
import { beforeEach, expect, test } from "bun:test";
import type { Result } from "../../src/cni/result.ts";
import type { Attachment, PluginConfig } from "../../src/contract/plugin.ts";
import type { AnyKind } from "../../src/contract/resource.ts";
import { undoAfter } from "../../src/contract/undo.ts";
import { readLedger } from "../../src/engine/ledger/ledger.ts";
import {
  asked,
  benchForEachTest,
  kinds,
  made,
  NETNS,
  owner,
  pluginOf,
  plugins,
  recorded,
  resultWith,
  type Run,
  run,
  warningsOf,
} from "../support/engine-bench.ts";

const bench = benchForEachTest();
beforeEach(() => {
  const ips = [{ address: "10.0.0.9/24" }];
  const pool = pluginOf([], { name: "pool", add: () => ({ cniVersion: "1.1.0", ips }), check: () => [] });
  plugins["pool"] = pool;
  plugins["by-link"] = { ...pool, name: "by-link", isReleasedThroughLink: true };
});

let leased: Result | undefined;
const tells: Run["plugin"] = {
  add(at: Attachment<PluginConfig>) {
    const ipam = at.ipam();
    at.applyAll([made("thing a")]);
    leased = ipam?.add();
    at.applyAll([made("thing b")]);
    return { cniVersion: "1.1.0" };
  },
};
const how = (ipam?: unknown) => ({ plugin: tells, conf: { ipam, prevResult: resultWith("veth1") } });
const list = () =>
  readLedger(owner, "test")!.entries.map(({ kind, spec }) => {
    const { name, type } = spec as { name?: string; type?: string };
    return `${kind} ${name ?? type}`;
  });

test("a lease is announced first, one that is released through the link with it", () => {
  expect(run("ADD", [], how({ type: "pool" }))).toEqual(["apply thing a", "apply thing b"]);
  expect(list()).toEqual(["ipam pool", "thing a", "thing b"]);
  expect(leased!.ips).toEqual([{ address: "10.0.0.9/24" }]);
  run("DEL", []);
  run("ADD", [], how({ type: "by-link" }));
  expect(list()).toEqual(["thing a", "ipam by-link", "thing b"]);
  expect(leased!.ips).toEqual([{ address: "10.0.0.9/24" }]);
});

test("without an IPAM plugin there is none", () => {
  for (const ipam of [undefined, {}, { type: "" }]) {
    run("ADD", [], how(ipam));
    expect(list()).toEqual(["thing a", "thing b"]);
    expect(leased).toBeUndefined();
    run("DEL", []);
  }
});

test("restated, its addresses are those of prevResult", () => {
  const released: string[] = [];
  for (const type of ["pool", "by-link"]) {
    plugins[type] = { ...plugins[type]!, del: () => void released.push(`after ${asked.length}`) };
    run("DEL", [], how({ type }));
    expect(leased!.ips).toEqual([{ address: "10.0.0.5/24" }]);
  }
  expect(released).toEqual(["after 2", "after 1"]);
  run("DEL", [], { plugin: tells, conf: { ipam: { type: "pool" } } });
  expect(leased!.ips).toEqual([]);
});

test("nothing that is announced is no ledger", () => {
  expect(run("ADD", [])).toEqual([]);
  expect(bench.ledgers()).toEqual([]);
});

test("what is in the way is found before anything is announced, and whose link it is is told", () => {
  const requireRoom = ({ name }: { name: string }) => {
    throw new Error(`${name} is taken`);
  };
  kinds["guarded"] = { ...kinds["thing"]!, kind: "guarded", requireRoom } as AnyKind;
  const guarded = { ...made("thing b"), kind: kinds["guarded"]! };
  recorded([made("thing before")], { containerId: "other" });
  expect(run("ADD", [made("thing a"), guarded])).toEqual(["b is taken"]);
  expect(bench.ledgers()).toEqual(["net/other@eth0@test"]);
});

test("what a thing could not undo itself is left to DEL, with a warning", () => {
  const apply = () => {
    const error = new Error("half made");
    undoAfter(error, () => {
      throw new Error("stuck");
    });
    throw error;
  };
  const half = { ...made("thing half"), kind: { ...kinds["thing"]!, apply } as AnyKind };
  expect(
    warningsOf(() =>
      expect(run("ADD", [made("thing a"), half])).toEqual(["apply thing a", "remove thing a", "half made"])
    ),
  )
    .toEqual(["ADD failed and could not undo thing half: stuck; DEL will try again"]);
  expect(list()).toEqual(["thing a", "thing half"]);
});

test("what an ADD cannot undo is left to DEL, with a warning", () => {
  const stuck = [made("thing a", { fails: { remove: "now" } }), made("thing b", { fails: { apply: "now" } })];
  expect(warningsOf(() => run("ADD", stuck))).toEqual([
    "ADD failed and could not undo thing a: cannot remove a; DEL will try again",
  ]);
  expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
});

test("the ledger says whose process it was, what it saw, and where the container was", () => {
  run("ADD", [made("thing a")], { call: { cniArgs: "A=b" } });
  expect(readLedger(owner, "test")!.header).toMatchObject({
    ...owner,
    plugin: "test",
    netnsPath: NETNS,
    hostNetns: "host",
    sight: expect.stringMatching(/^\S+ \S+$/),
    cniArgs: "A=b",
  });
});
