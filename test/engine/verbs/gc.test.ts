/** GC: what is stale, what is swept, who is called, and that everything is tried. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { NEXT_STEP } from "../../../src/engine/ledger/newer.ts";
import {
  asked,
  benchForEachTest,
  containerWith,
  made,
  OWN_NETNS,
  recorded,
  type Run,
  run,
  warningsOf,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

/** The plugin says when GC comes to its own part, and to the plugin that it passes GC on to. */
const gc = (valid: unknown, { plugin, ...how }: Run = {}) =>
  run("GC", [], {
    conf: { "cni.dev/valid-attachments": valid },
    plugin: {
      gc: () => void asked.push("gc"),
      passedOn: () => void asked.push("passed on"),
      sweeps: ["thing", "link"],
      ...plugin,
    },
    ...how,
  });
const attachment = (containerID: string, ifname = "eth0") => ({ containerID, ifname });

test("what is not in the list is removed by its ledger, in reverse, and then swept", () => {
  for (const [containerId, ifName] of [["a", "eth0"], ["a", "eth1"], ["b", "eth0"]] as const) {
    recorded([made(`thing ${containerId}-${ifName}`), made("thing last")], { containerId, ifName });
  }
  recorded([made("thing other")], { containerId: "c", plugin: "other" });
  recorded([made("thing elsewhere")], { containerId: "c", network: "elsewhere" });
  expect(gc([attachment("a")])).toEqual([
    "remove thing last",
    "remove thing a-eth1",
    "remove thing last",
    "remove thing b-eth0",
    "sweep a of thing net outside",
    "sweep a of link net outside",
    "gc",
    "passed on",
  ]);
  expect(bench.ledgers()).toEqual(["elsewhere/c@eth0@test", "net/a@eth0@test", "net/c@eth0@other"]);
});

test("an interface is valid for itself, and for its container", () => {
  const seen: boolean[] = [];
  const plugin: Run["plugin"] = {
    gc: (_, isValid) => {
      for (const ifName of ["eth0", "eth1", undefined]) {
        seen.push(isValid({ containerId: "a", ...ifName !== undefined && { ifName } }));
      }
    },
  };
  gc([attachment("a")], { plugin });
  expect(seen).toEqual([true, false, true]);
});

test("without a list nothing is done, and the other plugin not called; an empty list is one", () => {
  recorded([made("thing a")]);
  expect(gc(undefined)).toEqual([]);
  expect(gc(null)[0]).toBe("remove thing a");
  recorded([made("thing a")]);
  expect(gc([])[0]).toBe("remove thing a");
});

describe("a list that is none", () => {
  const wrong: [list: unknown, says: string][] = [
    ["a", 'must be an array, got "a"'],
    [{}, "must be an array, got {}"],
    [["a"], 'must hold objects with containerID and ifname, got "a"'],
    [
      [attachment("a"), { containerID: "b" }],
      'must hold objects with containerID and ifname, got {"containerID":"b"}',
    ],
    [[{ ifname: "eth0" }], 'must hold objects with containerID and ifname, got {"ifname":"eth0"}'],
    [[{ containerID: 5, ifname: "eth0" }], "must hold objects"],
  ];
  test.each(wrong)("%j", (list, says) => {
    recorded([made("thing a")]);
    expect(gc(list)).toEqual([expect.stringContaining(`"cni.dev/valid-attachments" ${says}`)]);
  });
});

test("everything is tried, and all failures are told", () => {
  const fails = { remove: "now" };
  recorded([made("thing x"), made("thing a", { fails }), made("thing y")], { containerId: "a" });
  recorded([made("thing b", { fails })], { containerId: "b" });
  recorded([made("thing c")], { containerId: "c" });
  writeFileSync(`${bench.directory}/net/d@eth0@test`, "", { mode: 0o600 });
  const plugin: Run["plugin"] = {
    gc: () => {
      throw new Error("gc failed");
    },
  };
  expect(gc([], { plugin })).toEqual([
    "remove thing y",
    "remove thing a",
    "remove thing x",
    "remove thing b",
    "remove thing c",
    "sweep  of thing net outside",
    "sweep  of link net outside",
    "passed on",
    "cannot remove a; cannot remove b; gc failed",
  ]);
  expect(bench.ledgers()).toEqual(["net/a@eth0@test", "net/b@eth0@test"]);
});

test("the namespace of a stale attachment may be gone, or another's", () => {
  recorded([made("thing a")]);
  expect(gc([], { isGone: true })[0]).toBe("remove thing a outside");
  for (const [cookie, how] of [["1", ""], ["2", " outside"]]) {
    recorded([made("thing a")], { netns: "1" });
    expect(gc([], { container: containerWith({}, { cookie }) })[0]).toBe(`remove thing a${how}`);
  }
  recorded([made("thing a")], { netnsPath: OWN_NETNS });
  expect(warningsOf(() => expect(gc([])[0]).toBe("remove thing a outside"))).toHaveLength(1);
});

test("a ledger of a newer release stays", () => {
  const unknown = { kind: { ...made("thing x").kind, kind: "of-tomorrow" }, spec: {} };
  recorded([unknown]);
  expect(warningsOf(() => expect(gc([]).at(-1)).toContain('unknown kind "of-tomorrow"'))).toEqual([]);
  expect(bench.ledgers()).toHaveLength(1);
});

test("so does one in a newer format, which does not matter while it is valid", () => {
  recorded([made("thing a")], { patchbay: 2 });
  expect(gc([attachment("ctr")]).at(-1)).toBe("passed on");
  expect(gc([]).at(-1)).toBe(`ledger ${bench.directory}/net/ctr@eth0@test is in format 2; ${NEXT_STEP}`);
  expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
});

test("STATUS judges the configuration, looks at the host alone, and asks the other plugin", () => {
  const plugin: Run["plugin"] = {
    judge: (_, call) => void asked.push(`judged ${call}`),
    status: ({ name }, { container }) => void asked.push(`status of ${name} ${container}`),
    passedOn: () => void asked.push("passed on"),
  };
  expect(run("STATUS", [], { plugin })).toEqual(["judged undefined", "status of net undefined", "passed on"]);
});
