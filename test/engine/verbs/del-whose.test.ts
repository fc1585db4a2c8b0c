/** DEL: what is the attachment's, and what has become another's. */
import { describe, expect, test } from "bun:test";
import { CniError } from "../../../src/cni/error.ts";
import { EMFILE, SyscallError } from "../../../src/ffi/errno.ts";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import {
  answerWith,
  benchForEachTest,
  confirmed,
  containers,
  containerWith,
  del,
  LONG_NAME,
  made,
  OWN_NETNS,
  owner,
  recorded,
  warningsOf,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

describe("the namespace at CNI_NETNS", () => {
  const mac = "02:00:00:00:00:0a", list = [made("link now")];

  test("is left alone where the ledger records another one", () => {
    for (const [cookie, how] of [["1", ""], ["2", " outside"]]) {
      recorded([made("thing a")], { netns: "1" }, answerWith("veth1"));
      expect(del(list, { container: containerWith({}, { cookie }) })).toEqual([
        `remove thing a${how}`,
        `remove link now restated${how}`,
      ]);
    }
  });

  test("is the container's where the link of prevResult is, which the ledger need not know", () => {
    recorded([made("thing a")], { netns: "1" }, answerWith("veth9"));
    expect(del(list, { ...confirmed, container: containerWith({ eth0: mac }, { cookie: "2" }) })).toEqual([
      "remove thing a outside",
      "remove link now restated",
    ]);
  });

  const ifName = LONG_NAME;
  const theirs = (changes = {}) =>
    recorded([made("link theirs")], { containerId: "other", ifName, netns: "2", ...changes });

  test("is left alone where the ledger of another container has the interface", () => {
    theirs();
    const call = { ifName }, container = containerWith({ [ifName]: mac }, { cookie: "2" });
    expect(del(list, { call, container })).toEqual(["remove link now restated outside"]);
    expect(del(list, { call, container: containerWith({}, { cookie: "2" }) })).toEqual(["remove link now restated"]);
    expect(del(list, { call, container: containerWith({ [ifName]: mac }) })).toEqual(["remove link now restated"]);
  });

  test.each([{ netns: "3" }, { ifName: "eth7" }, { containerId: owner.containerId, network: "third" }])(
    "but not where it is %j",
    (changes) => {
      theirs(changes);
      const container = containerWith({ [ifName]: mac }, { cookie: "2" });
      expect(del([made("thing now")], { call: { ifName }, container })).toEqual(["remove thing now restated"]);
    },
  );

  test("of the host itself: with a ledger DEL removes what is on the host, without one it fails", () => {
    const how = { call: { netnsPath: OWN_NETNS } };
    expect(del(list, how)).toEqual([
      `plugin's netns and netns from CNI_NETNS should not be the same; CNI_NETNS is "${OWN_NETNS}"`,
    ]);
    recorded([made("thing a")]);
    expect(
      warningsOf(() =>
        expect(del(list, how)).toEqual(["remove thing a outside", "remove link now restated outside"])
      ),
    )
      .toEqual([`CNI_NETNS "${OWN_NETNS}" is the host's own namespace now; removing what is left on the host`]);
  });

  test("that is gone, with and without a ledger: DEL removes what is on the host", () => {
    expect(del(list, { isGone: true })).toEqual(["remove link now restated outside"]);
    recorded([made("thing a")]);
    expect(del([], { isGone: true })).toEqual(["remove thing a outside"]);
  });

  test("that cannot be opened for another reason: DEL fails, and removes nothing", () => {
    recorded([made("thing a")]);
    const container = containerWith({});
    Object.defineProperty(containers, "/run/netns/closed", {
      configurable: true,
      enumerable: true,
      get() {
        throw new SyscallError("open", EMFILE, "/run/netns/closed");
      },
    });
    expect(del(list, { container, call: { netnsPath: "/run/netns/closed" } })).toEqual([
      expect.stringContaining('failed to open netns "/run/netns/closed": '),
    ]);
    expect(bench.ledgers()).toHaveLength(1);
  });

  test("an error of that code after the host was opened is what it is", () => {
    const plugin = {
      add: () => {
        throw new CniError(8, "of the plugin");
      },
    };
    recorded([made("thing a"), { ...made("thing b"), spec: 5 }]);
    expect(del([], { plugin })).toEqual(["remove thing a", "of the plugin"]);
  });
});

describe("an interface that two networks record", () => {
  const list = [made("link now"), made("rule now"), made("thing now")];
  const removed = ["remove thing now restated", "remove rule now restated", "remove link now restated"];
  const how = { container: containerWith({}, { cookie: "1" }), call: { ifName: LONG_NAME } };

  test("stays, with what goes by its name, where the other one has it", () => {
    recorded([made("thing x"), made("link theirs")], { network: "other", netns: "1", ifName: LONG_NAME });
    expect(warningsOf(() => expect(del(list, how)).toEqual(["remove thing now restated"]))).toEqual([
      'an-interface-with-a-long-name of container ctr stays: it belongs to network "other"',
    ]);
    expect(del([made("rule now"), made("thing now")], how)).toEqual(removed.slice(0, 2));
  });

  test.each([
    ["made no link", [made("thing x")], {}],
    ["is in another namespace", [made("link theirs")], { netns: "2" }],
    ["is of another container", [made("link theirs")], { containerId: "other" }],
    ["is another interface", [made("link theirs")], { ifName: "eth1" }],
  ])("does not stay where the other one %s", (_, theirs, header) => {
    recorded(theirs, { network: "other", netns: "1", ifName: LONG_NAME, ...header });
    expect(del(list, how)).toEqual(removed);
  });
});

describe("DEL after an ADD of this process that failed", () => {
  const takesBack = (failed: string | undefined) => ({ options: { takesBack: { failed } } });
  const rows: [what: string, answers: (string | undefined)[], failed: string | undefined, removes: boolean][] = [
    ["no ledger", [], "test", false],
    ["of the plugin that failed, an ADD that succeeded", ["veth1"], "test", false],
    ["of the plugin that failed, ADDs that succeeded", ["veth1", "veth2"], "test", false],
    ["of the plugin that failed, one that did not end", [undefined], "test", true],
    ["of the plugin that failed, one that did not end, after another", ["veth1", undefined], "test", true],
    ["of a plugin before it", ["veth1"], "other", true],
    ["of a plugin that is in the chain twice", ["veth1"], undefined, true],
  ];
  test.each(rows)("%s", (_, answers, failed, removes) => {
    for (const link of answers) recorded([made("thing a")], {}, link === undefined ? undefined : answerWith(link));
    const expected = removes ? [...answers.map(() => "remove thing a"), "remove thing now restated"] : [];
    expect(del([made("thing now")], takesBack(failed))).toEqual(expected);
    expect(bench.ledgers()).toHaveLength(removes || answers.length === 0 ? 0 : 1);
  });

  test("a plugin with a record of its own has its DEL", () => {
    let calls = 0;
    del([], { ...takesBack("test"), plugin: { del: () => void calls++ } });
    expect(calls).toBe(1);
  });
});

describe("DEL of a container that ledgers showed to be gone", () => {
  const gone = () => [readLedger(owner, "test")!];

  test("removes what these recorded, though DEL has given some of it up meanwhile", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    expect(del([], { ...confirmed, options: { gone: gone() } })).toEqual(["remove thing a"]);
    expect(bench.ledgers()).toEqual([]);
  });

  test("removes nothing of one that was attached since, or that was not judged", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    const before = gone();
    recorded([made("thing b")], {}, answerWith("veth2"));
    for (const judged of [before, []]) {
      expect(del([], { ...confirmed, options: { gone: judged } })).toEqual([
        "eth0 of container ctr stays in network net: it is attached again",
      ]);
    }
    expect(bench.ledgers()).toHaveLength(1);
  });
});
