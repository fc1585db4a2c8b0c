/** DEL: what of ledger, configuration and prevResult counts, in which order things are removed, and what fails. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import { NEXT_STEP } from "../../../src/engine/ledger/newer.ts";
import {
  answerWith,
  benchForEachTest,
  callOf,
  confirmed,
  del,
  made,
  owner,
  prevResult,
  recorded,
  resultWith,
  type Run,
  warningsOf,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

const other = resultWith("veth2");
const restated = [made("thing now")];

describe("what counts", () => {
  test("a ledger that prevResult confirms: the configuration is not asked", () => {
    recorded([made("thing a"), made("thing b")], {}, answerWith("veth1"));
    expect(del(restated, confirmed)).toEqual(["remove thing b", "remove thing a"]);
    expect(bench.ledgers()).toEqual([]);
  });

  test("so does one that confirms it in another form", () => {
    recorded([made("thing a")], {}, { links: [], mac: "02:00:00:00:00:0a", addresses: [] });
    const interfaces = [{ name: "eth0", mac: "02:00:00:00:00:0A", sandbox: "/run/netns/x" }];
    expect(del(restated, { conf: { prevResult: { cniVersion: "1.1.0", interfaces } } })).toEqual(["remove thing a"]);
  });

  test("without a ledger, the configuration", () => {
    expect(del([made("thing a"), made("thing b")], confirmed)).toEqual([
      "remove thing b restated",
      "remove thing a restated",
    ]);
  });

  test.each([["another result", { prevResult: other }], ["no result", {}]])("with %s, both", (_, conf) => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    expect(del(restated, { conf })).toEqual(["remove thing a", "remove thing now restated"]);
    expect(bench.ledgers()).toEqual([]);
  });

  test("with a result that cannot be read, too, and a warning", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    expect(warningsOf(() => expect(del(restated, { conf: { prevResult: 7 } })).toHaveLength(2))).toEqual([
      expect.stringContaining("DEL ignores prevResult: "),
    ]);
  });

  test.each([
    ["plainly", prevResult],
    ["in another form", { ...prevResult, ips: [{ address: "10.0.0.5/24" }, { address: "fd00:0::05/64" }] }],
  ])("when a line of the ledger is damaged, the configuration too, even if it is confirmed %s", (_, given) => {
    const entry = { ...made("thing a"), kind: { kind: 5 } } as unknown as ReturnType<typeof made>;
    const addresses = given.ips!.map(({ address }) => address.replace("fd00:0::05", "fd00::5"));
    recorded([made("thing a"), entry], {}, { links: ["veth1"], addresses });
    expect(readLedger(owner, "test")!.damaged).toBe(true);
    expect(del(restated, { conf: { prevResult: given } })).toEqual(["remove thing a", "remove thing now restated"]);
  });

  test("every ADD of the ledger, the last one first", () => {
    recorded([made("thing a")], {}, answerWith("veth2"));
    recorded([made("thing b")], {}, answerWith("veth1"));
    expect(del(restated, confirmed)).toEqual(["remove thing b", "remove thing a"]);
  });

  test("after the network was renamed, the ledger of its former name that prevResult confirms", () => {
    recorded([made("thing other")], { network: "former", plugin: "other" }, answerWith("veth1"));
    recorded([made("thing a")], { network: "former" }, answerWith("veth1"));
    recorded([made("thing b")], { network: "third" }, answerWith("veth2"));
    expect(del(restated, { conf: {} })).toEqual(["remove thing now restated"]);
    expect(del(restated, confirmed)).toEqual(["remove thing a"]);
    expect(bench.ledgers()).toEqual(["former/ctr@eth0@other", "third/ctr@eth0@test"]);
  });

  test("a file in the ledger's place that cannot be read goes with a DEL by configuration", () => {
    recorded([made("thing a")], { stdin: "no document" });
    expect(warningsOf(() => expect(del(restated)).toEqual(["remove thing now restated"]))).toEqual([]);
    expect(bench.ledgers()).toEqual([]);
  });
});

describe("order", () => {
  test("the lease that comes first is released last, and of both lists the ledger's", () => {
    recorded([made("lease a"), made("thing a"), made("lease late")]);
    expect(del([made("lease now"), made("thing now")])).toEqual([
      "remove lease late",
      "remove thing a",
      "remove thing now restated",
      "remove lease a",
      "remove lease now restated",
    ]);
  });

  test("what is no lease is not released last, though it comes first", () => {
    recorded([made("call a"), made("thing a")]);
    expect(del([])).toEqual(["remove thing a", "remove call a"]);
  });

  test("after a failure the ledger's list is finished, its lease too, and the other list is left to the next DEL", () => {
    const fails = { remove: "now" };
    recorded([made("lease a"), made("thing a"), made("thing b", { fails }), made("thing c")]);
    expect(del([made("lease now"), ...restated])).toEqual([
      "remove thing c",
      "remove thing b",
      "remove thing a",
      "remove lease a",
      "remove lease now restated",
      "cannot remove b",
    ]);
    expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
  });

  test("what fails of the restated list keeps the ledger, too", () => {
    recorded([made("thing a")]);
    expect(del([made("thing x", { fails: { remove: "now" } }), made("thing y")]).slice(1)).toEqual([
      "remove thing y restated",
      "remove thing x restated",
      "cannot remove x",
    ]);
    expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
  });
});

describe("a call of another plugin", () => {
  const call = made("call a", { ips: [] });

  test("is made once, when both lists have it, whatever prevResult is", () => {
    recorded([call], { stdin: callOf("ADD", { prevResult: other }).stdin });
    recorded([call]);
    expect(del([call, call], { conf: { prevResult: other } })).toEqual(["remove call a"]);
    expect(del([call, call])).toEqual(["remove call a restated"]);
  });

  const differing: [what: string, header: Parameters<typeof recorded>[1], now: ReturnType<typeof made>][] = [
    ["specification", {}, made("call b", { ips: [] })],
    ["kind", {}, made("lease a", { ips: [] })],
    ["CNI_ARGS", { cniArgs: "A=b" }, call],
    ["configuration", { stdin: callOf("ADD", { subnet: "10.0.0.0/24" }).stdin }, call],
  ];
  test.each(differing)("is made twice where the %s differs", (_, header, now) => {
    recorded([made("thing first"), call], header);
    expect(del([made("thing first"), now])).toContainAllValues([
      "remove call a",
      "remove thing first",
      `remove ${now.kind.kind} ${(now.spec as { name: string }).name} restated`,
      "remove thing first restated",
    ]);
  });

  test("other things are removed as often as they are listed", () => {
    recorded([made("thing a"), made("thing a")]);
    expect(del([made("thing a")])).toEqual(["remove thing a", "remove thing a", "remove thing a restated"]);
  });
});

describe("what fails", () => {
  test("a kind that is not known keeps the ledger, and the rest is removed", () => {
    const unknown = { kind: { ...made("thing x").kind, kind: "of-tomorrow" }, spec: {} };
    recorded([made("thing a"), unknown]);
    expect(del([])).toEqual([
      "remove thing a",
      `ledger ${bench.directory}/net/ctr@eth0@test holds a resource of unknown kind "of-tomorrow"; ${NEXT_STEP}`,
    ]);
    expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
  });

  test("a ledger in a newer format stays as it is, and what the configuration says is removed", () => {
    recorded([made("thing a")], { patchbay: 2 }, answerWith("veth1"));
    const path = `${bench.directory}/net/ctr@eth0@test`, before = readFileSync(path, "utf8");
    for (let count = 0; count < 2; count++) {
      expect(del(restated, confirmed)).toEqual([
        "remove thing now restated",
        `ledger ${path} is in format 2; ${NEXT_STEP}`,
      ]);
    }
    expect(readFileSync(path, "utf8")).toBe(before);
  });

  test("so does one of which a newer release made only the first ADD", () => {
    recorded([made("thing a")], { patchbay: 2 }, answerWith("veth1"));
    recorded([made("thing b")], {}, answerWith("veth2"));
    const path = `${bench.directory}/net/ctr@eth0@test`;
    expect(del([], { conf: { prevResult: other } })).toEqual([
      "remove thing b",
      `ledger ${path} is in format 2; ${NEXT_STEP}`,
    ]);
    expect(bench.ledgers()).toEqual(["net/ctr@eth0@test"]);
  });

  const broken = {
    plugin: {
      add: () => {
        throw new Error("no story");
      },
    },
  };

  test("a story that cannot be told: with a ledger it is left out, without one DEL fails", () => {
    recorded([made("thing a")]);
    expect(warningsOf(() => expect(del([], broken)).toEqual(["remove thing a"]))).toEqual([
      "DEL uses the ledger only: no story",
    ]);
    expect(warningsOf(() => expect(del([], broken)).toEqual(["no story"]))).toEqual([]);
  });

  test("with a damaged ledger it fails, too", () => {
    recorded([made("thing a"), { ...made("thing b"), spec: 5 }]);
    expect(del([], broken)).toEqual(["remove thing a", "no story"]);
  });

  test.each(["TypeError", "RangeError", "SyntaxError"])(
    "%s: a specification of the ledger that cannot be understood is left out, one of the configuration is not",
    (fault) => {
      const thing = made("thing a", { fails: { remove: fault } });
      recorded([thing], {}, answerWith("veth1"));
      expect(warningsOf(() => expect(del([], confirmed)).toEqual(["remove thing a"]))).toEqual([
        "what the ledger says of thing cannot be understood, and nothing is removed by it: cannot remove a",
      ]);
      expect(bench.ledgers()).toEqual([]);
      expect(del([thing])).toEqual(["remove thing a restated", "cannot remove a"]);
    },
  );
});

describe("a plugin with a record of its own", () => {
  test("gets the call, what can be read of prevResult, and no story is told", () => {
    const seen: unknown[] = [];
    const plugin: Run["plugin"] = {
      del: ({ purpose, prevResult, containerId }) => void seen.push(purpose, prevResult?.ips, containerId),
    };
    expect(del(restated, { ...confirmed, plugin })).toEqual([]);
    expect(seen).toEqual(["undo", prevResult.ips, "ctr"]);
  });

  test("its failure is DEL's, and keeps the ledger", () => {
    recorded([made("thing a")]);
    const plugin = {
      del: () => {
        throw new Error("not now");
      },
    };
    expect(del([], { plugin })).toEqual(["not now"]);
    expect(bench.ledgers()).toHaveLength(1);
  });

  test("without a record nothing is done at all", () => {
    recorded([made("thing a")]);
    expect(del(restated, { plugin: { keepsNothing: true } })).toEqual([]);
    expect(bench.ledgers()).toHaveLength(1);
  });
});
