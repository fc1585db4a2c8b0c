/**
 * The ledger on disk: a resource is recorded before it is made, and a file that a crash cut off is read correctly.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readLedger, removeLedger, removing, repairing } from "../../../src/engine/ledger/ledger.ts";
import { openLedger } from "../../../src/engine/ledger/open-ledger.ts";
import { confirmedAdd } from "../../../src/engine/ledger/confirmation.ts";
import { claimedByOthers, recordedByOthers } from "../../../src/engine/ledger/claims.ts";
import { isAsleep } from "../../support/asleep.ts";
import { announced, answer, header, owner, stateDirectoryForEachTest, thing } from "../../support/ledgers.ts";

const state = stateDirectoryForEachTest();
const path = () => join(state.path, "net", "ctr@eth0@bridge");

/** Records an ADD that made one thing after the other. */
function added(names: string[], { header: changes = {}, links = answer.links } = {}): void {
  const ledger = openLedger({ ...header, ...changes });
  ledger.intend(names.map(thing));
  ledger.finish({ ...answer, links });
}

test("keys of a header that this version does not know do no harm", () => {
  added(["a"], { header: { ofTomorrow: { deep: [1] } } });
  const record = readLedger(owner, "bridge")!;
  expect([record.damaged, announced()]).toEqual([false, ["a"]]);
  expect(removing(record, () => removeLedger(owner, "bridge"))).toBeUndefined();
});

test("a newer format: the header's attachment is read, and nothing of what it made", () => {
  const lines = [{ patchbay: 2, ...header, netns: "7", caller: "1 2", stdin: 5, cniArgs: [], more: {} }, {
    kind: "thing",
    spec: { name: "a" },
  }, { answer: "of another form" }];
  mkdirSync(join(state.path, "net"), { mode: 0o700 });
  writeFileSync(path(), lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
  const read = {
    patchbay: 2,
    ...owner,
    plugin: "bridge",
    netnsPath: "/run/netns/x",
    netns: "7",
    cniArgs: "",
    stdin: "{}",
  };
  const entries = [{ kind: "format 2", spec: {} }];
  expect(readLedger(owner, "bridge")).toEqual({
    path: path(),
    adds: [{ header: read, entries }],
    header: read,
    entries,
    damaged: true,
  });
});

test("announced resources are read back in order, with their call", () => {
  const ledger = openLedger(header);
  ledger.intend([thing("a")]);
  ledger.intend([thing("b"), thing("c")]);
  expect(ledger.finish(answer)).toBe(true);
  const entries = ["a", "b", "c"].map((name) => ({ kind: "thing", spec: { name } }));
  const fullHeader = { patchbay: 1 as const, ...header };
  expect(readLedger(owner, "bridge")).toEqual({
    path: path(),
    adds: [{ header: fullHeader, entries, answer }],
    header: fullHeader,
    entries,
    damaged: false,
  });
  expect(statSync(path()).mode & 0o777).toBe(0o600);
  expect(statSync(join(state.path, "net")).mode & 0o777).toBe(0o700);
});

test("an abandoned ledger leaves nothing except the entries of an earlier ADD", () => {
  openLedger(header).abandon();
  expect(readdirSync(state.path)).toEqual([]);
  added(["first"]);
  const second = openLedger(header);
  second.intend([thing("second")]);
  expect(announced()).toEqual(["first", "second"]);
  second.abandon();
  expect(announced()).toEqual(["first"]);
});

test("of two DELs that give up a shared claim, the later finds it unclaimed; a new ADD claims it again", () => {
  const add = (who: typeof header, name: string) => {
    const ledger = openLedger(who);
    ledger.intend([thing(name), { kind: { kind: "other" }, spec: {} }]);
    ledger.finish(answer);
  };
  const long = { ...header, network: "net2", containerId: "c".repeat(220), netnsPath: "/proc/self/ns/net" };
  add(header, "a");
  add(long, "b");
  expect(claimedByOthers("thing", header)).toEqual([{ name: "b" }]);
  expect(claimedByOthers("thing", long)).toEqual([]);
  expect(claimedByOthers("thing", header)).toEqual([]);
  expect(recordedByOthers("other", header)).toEqual([{}]);
  const before = readFileSync(path());
  add(header, "again");
  expect(recordedByOthers("thing", long)).toEqual([{ name: "again" }]);
  writeFileSync(path(), before);
  const { entries, damaged } = readLedger(owner, "bridge")!;
  expect([entries.map(({ kind }) => kind), damaged]).toEqual([["thing", "other"], false]);
  // The ledger is gone, as for the second of two DELs.
  removeLedger(owner, "bridge");
  expect(claimedByOthers("thing", header)).toEqual([]);
  expect(readdirSync(state.path)).toEqual(["net2"]);
});

test("several ADDs in one ledger are distinct, each with its answer", () => {
  added(["a"]);
  added(["b"], { links: ["veth2"] });
  const killed = openLedger(header);
  killed.intend([thing("c")]);
  const record = readLedger(owner, "bridge")!;
  expect(announced()).toEqual(["a", "b", "c"]);
  expect(record.adds.map(({ answer }) => answer?.links)).toEqual([["veth1"], ["veth2"], undefined]);
  const confirmed = (link: string, address: string) =>
    confirmedAdd(record, { cniVersion: "1.1.0", interfaces: [{ name: link }], ips: [{ address }] })?.entries;
  expect(confirmed("veth1", "10.0.0.5/24")).toEqual([{ kind: "thing", spec: { name: "a" } }]);
  expect(confirmed("veth2", "10.0.0.5/24")).toEqual([{ kind: "thing", spec: { name: "b" } }]);
  expect(confirmed("veth2", "10.0.0.6/24")).toBeUndefined();
  expect(confirmed("veth3", "10.0.0.5/24")).toBeUndefined();
});

test("finish() reports that DEL removed the ledger meanwhile", () => {
  const ledger = openLedger(header);
  ledger.intend([thing("a")]);
  removeLedger(owner, "bridge");
  expect(ledger.finish(answer)).toBe(false);
});

test("wherever the file is cut off, the complete lines before the cut are read", () => {
  const ledger = openLedger(header);
  for (const name of ["a", "b", "c"]) ledger.intend([thing(name)]);
  ledger.finish(answer);
  const bytes = readFileSync(path());
  const lines = bytes.toString().split("\n");
  for (let length = 0; length <= bytes.length; length++) {
    writeFileSync(path(), bytes.subarray(0, length));
    const complete = bytes.subarray(0, length).toString().split("\n").length - 1;
    expect(announced()).toEqual(complete === 0 ? undefined : ["a", "b", "c"].slice(0, complete - 1));
    expect(readLedger(owner, "bridge")?.damaged ?? false).toBe(false);
  }
  expect(lines).toHaveLength(6);
});

test("an ADD after a crash starts a new line after the one that was cut off", () => {
  added(["a"]);
  appendFileSync(path(), `{"kind":"thing","spec":{"na`);
  added(["b"]);
  expect(announced()).toEqual(["a", "b"]);
  expect(readLedger(owner, "bridge")!.damaged).toBe(true);
});

test("whatever the file contains, reading it never throws", () => {
  mkdirSync(join(state.path, "net"));
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json().map((text) => text + "\n")), (text) => {
    writeFileSync(path(), text);
    const record = readLedger(owner, "bridge");
    expect(record === undefined || Array.isArray(record.entries)).toBe(true);
  }));
});

test("ledgers with names that are too long for a file name are distinct", () => {
  const long = "x".repeat(300);
  for (const last of ["1", "2"]) added([last], { header: { network: long + "n", containerId: long + last } });
  for (const last of ["1", "2"]) {
    const record = readLedger({ network: long + "n", containerId: long + last, ifName: "eth0" }, "bridge");
    expect(record?.entries[0]?.spec).toEqual({ name: last });
  }
});

test("a directory that others can write to, and a symbolic link instead of the file, are rejected", () => {
  mkdirSync(join(state.path, "net"));
  chmodSync(join(state.path, "net"), 0o777);
  expect(() => openLedger(header)).toThrow("writable by nobody else");
  chmodSync(join(state.path, "net"), 0o700);
  symlinkSync("/etc/hostname", path());
  expect(() => openLedger(header)).toThrow("too many levels of symbolic links");
});

test("a repair does not run during ADD or DEL, and DEL waits for it", () => {
  const repairs = () => {
    const record = readLedger(owner, "bridge")!;
    let ran = false;
    expect(repairing(record, () => void (ran = true))).toBe(ran);
    return ran;
  };
  const ledger = openLedger(header);
  ledger.intend([thing("a")]);
  expect(repairs()).toBe(false);
  ledger.finish(answer);
  expect(repairs()).toBe(true);
  const record = readLedger(owner, "bridge")!;
  removing(record, () => {
    expect(repairs()).toBe(false);
    removing(record, () => {});
    removeLedger(owner, "bridge");
  });
  expect(repairing(record, () => expect.unreachable())).toBe(false);

  openLedger(header).intend([thing("a")]);
  expect(repairing(readLedger(owner, "bridge")!, () => expect.unreachable())).toBe(false);
});

test("a DEL that waits for a repair continues when it ends", async () => {
  added(["a"]);
  const module = join(import.meta.dir, "../../../src/engine/ledger/ledger.ts");
  const program = `
    import { readLedger, removing } from ${JSON.stringify(module)};
    removing(readLedger(${JSON.stringify(owner)}, "bridge"), () => console.log("removed"));`;
  let waiting: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined;
  repairing(readLedger(owner, "bridge")!, () => {
    waiting = Bun.spawn([process.execPath, "-e", program], { stdin: "ignore", stdout: "pipe", env: process.env });
    while (!isAsleep(waiting.pid)) Bun.sleepSync(10);
    expect(waiting.exitCode).toBe(null);
  });
  expect(await waiting!.stdout.text()).toBe("removed\n");
});
