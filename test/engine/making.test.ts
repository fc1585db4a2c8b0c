/** A failed ADD undoes what it made, in reverse, and nothing else. */
import { beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { prevResultOf } from "../../src/engine/attachment.ts";
import { make } from "../../src/engine/making.ts";
import { restate } from "../../src/engine/restating.ts";
import { readLedger, removeLedger } from "../../src/engine/ledger/ledger.ts";
import type { Attachment, PluginConfig } from "../../src/contract/plugin.ts";
import { resource, type ResourceKind } from "../../src/contract/resource.ts";
import type { Result } from "../../src/cni/result.ts";
import { owner, stateDirectoryForEachTest } from "../support/ledgers.ts";

const state = stateDirectoryForEachTest();
let log: string[];
beforeEach(() => void (log = []));

const ledgerText = () => {
  const file = join(state.path, "net", "ctr@eth0@test");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};

const kind: ResourceKind<{ name: string; fails?: "apply" | "remove" }, string> = {
  kind: "test",
  unmade: "unmade",
  apply({ name, fails }) {
    expect(ledgerText()).toContain(`{"kind":"test","spec":{"name":"${name}"`);
    if (fails === "apply") throw new Error(`cannot make ${name}`);
    log.push(`apply ${name}`);
    return `made ${name}`;
  },
  remove({ name, fails }) {
    if (fails === "remove") throw new Error(`cannot remove ${name}`);
    log.push(`remove ${name}`);
  },
  verify: () => [],
  describe: ({ name }) => name,
};
const thing = resource(kind);
const shared = resource({ ...kind, undo: ({ name }, made) => void log.push(`undo ${name}, ${made}`) });

const call = {
  plugin: "test",
  conf: { cniVersion: "1.0.0", name: "net", type: "test" } as PluginConfig,
  invocation: { command: "ADD" as const, ...owner, netnsPath: "", cniArgs: "", path: "", stdin: "{}" },
  prevResult: () => undefined,
  host: {} as never,
};
const result: Result = { cniVersion: "1.0.0" };
const story = (tell: (at: Attachment<PluginConfig>) => void) => (at: Attachment<PluginConfig>) => {
  tell(at);
  return result;
};

test("each resource is recorded before it is made, and apply() returns what the kernel decided", () => {
  make(
    call,
    story((at) => {
      expect(at.apply(thing({ name: "a" }))).toBe("made a");
      at.applyAll([thing({ name: "b" }), shared({ name: "c" })]);
    }),
  );
  expect(log).toEqual(["apply a", "apply b", "apply c"]);
  expect(readLedger(owner, "test")!.entries).toHaveLength(3);
});

test("a failure undoes what was made, in reverse, but not what failed or was only announced", () => {
  const failing = story((at) => {
    at.apply(shared({ name: "bridge" }));
    at.applyAll([thing({ name: "a" }), thing({ name: "b", fails: "apply" }), thing({ name: "c" })]);
  });
  expect(() => make(call, failing)).toThrow("cannot make b");
  expect(log).toEqual(["apply bridge", "apply a", "remove a", "undo bridge, made bridge"]);
  expect(ledgerText()).toBe("");
});

test("undoing continues after a failure, and the ledger stays for DEL", () => {
  const failing = story((at) => {
    at.applyAll([thing({ name: "a" }), thing({ name: "b", fails: "remove" })]);
    throw new Error("ADD fails");
  });
  expect(() => make(call, failing)).toThrow("ADD fails");
  expect(log).toEqual(["apply a", "apply b", "remove a"]);
  expect(readLedger(owner, "test")!.entries).toHaveLength(2);
});

test("an ADD whose ledger DEL removed undoes itself", () => {
  const raced = story((at) => {
    at.apply(thing({ name: "a" }));
    removeLedger(owner, "test");
  });
  expect(() => make(call, raced)).toThrow("deleted while it was being added");
  expect(log).toEqual(["apply a", "remove a"]);
});

test("a failed second ADD keeps the first one's record", () => {
  make(call, story((at) => void at.apply(thing({ name: "a" }))));
  expect(() => make(call, story((at) => void at.apply(thing({ name: "b", fails: "apply" }))))).toThrow();
  expect(readLedger(owner, "test")!.entries).toEqual([{ kind: "test", spec: { name: "a" } }]);
});

test("restating makes nothing, returns placeholders, and takes names from prevResult", () => {
  const prevResult: Result = { cniVersion: "1.0.0", interfaces: [{ name: "veth1", mac: "02:00:00:00:00:01" }] };
  const list = restate(
    { ...call, prevResult: () => prevResult },
    "check",
    story((at) => {
      expect(at.purpose).toBe("check");
      expect(at.apply(thing({ name: "a" }))).toBe("unmade");
      const name = at.choose(() => "fresh", ({ interfaces }) => interfaces?.[0]?.name ?? "");
      at.applyAll([thing({ name })]);
      expect([at.mayHave(true), at.mayHave(false)]).toEqual([true, false]);
      expect(at.configured(() => "today's", "unknown")).toBe("today's");
    }),
  );
  expect(log).toEqual([]);
  expect(list.map(({ spec }) => spec)).toEqual([{ name: "a" }, { name: "veth1" }]);
});

test("a DEL that restates includes everything that an option may have made", () => {
  restate(
    call,
    "undo",
    story((at) => {
      expect(at.mayHave(false)).toBe(true);
      expect(at.configured(() => "today's", "unknown")).toBe("unknown");
    }),
  );
});

test("prevResult is read when it is first asked for, and once", () => {
  let reads = 0;
  const conf = {
    ...call.conf,
    get prevResult() {
      reads++;
      return { cniVersion: "1.0.0", ips: [{ address: "10.0.0.5/24" }] };
    },
  };
  const prevResult = prevResultOf(Object.create(conf));
  expect(reads).toBe(0);
  const first = prevResult();
  expect(first?.ips).toEqual([{ address: "10.0.0.5/24" }]);
  const after = reads;
  expect(prevResult()).toBe(first);
  expect(reads).toBe(after);
});

test("what confines a link is refused after what opens it, whatever the story is told for, and nothing is made of it", () => {
  const opening = resource({ ...kind, kind: "opening", opensLink: true, apply: () => "made opening" });
  const confining = resource({ ...kind, kind: "confining", confines: true });
  const late = (at: Attachment<PluginConfig>): Result => {
    at.applyAll([thing({ name: "a" }), opening({ name: "link" }), confining({ name: "check" })]);
    return { cniVersion: "1.1.0" };
  };
  const refused = 'story has "confining" after "opening"';
  expect(() => make(call, late)).toThrow(refused);
  expect(ledgerText()).toBe("");
  expect(log).toEqual([]);
  for (const purpose of ["check", "undo", "plan"] as const) {
    expect(() => restate(call, purpose, late)).toThrow(refused);
  }
});
