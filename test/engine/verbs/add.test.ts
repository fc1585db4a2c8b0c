/** ADD: what is refused before anything is made, and what a resident that died has left. */
import { afterEach, describe, expect, test } from "bun:test";
import { openSession } from "../../../src/engine/run.ts";
import { endCall, leaveToCaller, ownProcessId, takeCall } from "../../../src/process/calls.ts";
import {
  answerWith,
  asked,
  benchForEachTest,
  callOf,
  containers,
  containerWith,
  made,
  NETNS,
  pluginOf,
  recorded,
  resultWith,
  run,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();
afterEach(() => endCall());

const add = (how?: Parameters<typeof run>[2]) => run("ADD", [made("thing a")], how);

test("the result has the configuration's version", () => {
  const plugin = pluginOf([made("thing a")], { add: () => ({ cniVersion: "1.1.0", ips: [] }) });
  containers[NETNS] = containerWith({});
  const result = openSession().runVerb(plugin, callOf("ADD", { cniVersion: "0.4.0" }));
  expect(result).toEqual({ cniVersion: "0.4.0", ips: [] });
});

describe("refused before anything is made", () => {
  test("what the plugin judges, by configuration, call and prevResult", () => {
    const judge: NonNullable<Parameters<typeof pluginOf>[1]>["judge"] = ({ name }, call) => {
      throw new Error(`${name} ${call!.ifName} ${call!.cniArgs} ${call!.prevResult?.ips?.[0]?.address}`);
    };
    const how = { conf: { prevResult: resultWith("veth1") }, call: { cniArgs: "A=b" }, plugin: { judge } };
    expect(add(how)).toEqual(["net eth0 A=b 10.0.0.5/24"]);
    expect(bench.ledgers()).toEqual([]);
  });

  test("a plugin that needs an earlier one", () => {
    const plugin = { missingPrevResult: "must be chained" };
    expect(add({ plugin })).toEqual([
      'must be chained; there is no prevResult; in a list, it stands behind the plugin that makes the interface, such as "bridge"',
    ]);
    expect(add({ plugin, conf: { prevResult: resultWith("veth1") } })).toEqual(["apply thing a"]);
  });

  test("a namespace that is not there, unless the plugin has nothing in it", () => {
    expect(add({ isGone: true })).toEqual([
      `failed to open netns "${NETNS}": failed to Statfs "${NETNS}": no such file or directory; ` +
      "CNI_NETNS must be the path of a network namespace",
    ]);
    expect(add({ isGone: true, plugin: { keepsNothing: true } })).toEqual(["apply thing a outside"]);
    expect(add({ isGone: true, plugin: { del: () => {} } })).toEqual(["apply thing a outside"]);
  });

  test("a call that is left to its caller", () => {
    takeCall({ id: ownProcessId, isGone: () => false });
    expect(() => leaveToCaller("a wait")).toThrow("left to the caller");
    expect(add()).toEqual(["left to the caller: a wait"]);
    expect(bench.ledgers()).toEqual([]);
  });
});

describe("a ledger that is there already", () => {
  const left = (caller: string | undefined) => recorded([made("thing left")], caller === undefined ? {} : { caller });

  test("is taken back where this process's call began it in a resident that died", () => {
    left(ownProcessId());
    expect(add()).toEqual(["remove thing left", "remove thing a restated", "apply thing a"]);
  });

  test.each([["another process's", () => "1 2 3"], ["nobody's", () => undefined]])(
    "stays where it is %s",
    (_, caller) => {
      left(caller());
      expect(add()).toEqual(["apply thing a"]);
      expect(run("DEL", [], {})).toEqual(["remove thing a", "remove thing left"]);
    },
  );

  test("stays where an ADD before it is in it, too", () => {
    recorded([made("thing first")], {}, answerWith("veth1"));
    left(ownProcessId());
    expect(add()).toEqual(["apply thing a"]);
  });

  test("stays in a resident, which has the call of another process", () => {
    takeCall({ id: ownProcessId, isGone: () => false });
    left(ownProcessId());
    expect(add()).toEqual(["apply thing a"]);
  });
});

test("an ADD that fails is undone, and nothing is asked of what was not made", () => {
  const list = [made("thing a"), made("link b", { fails: { apply: "now" } }), made("thing c")];
  expect(run("ADD", list)).toEqual(["apply thing a", "apply link b", "remove thing a", "cannot apply b"]);
  expect(bench.ledgers()).toEqual([]);
  expect(asked).toEqual([]);
});
