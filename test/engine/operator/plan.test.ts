/** plan: what ADD would make and return, what would be in its way, and that nothing is made. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { CniError, errorText } from "../../../src/cni/error.ts";
import type { Result } from "../../../src/cni/result.ts";
import { EarlierFailure } from "../../../src/contract/failures.ts";
import type { AnyKind } from "../../../src/contract/resource.ts";
import { planAdd, type PluginPlan } from "../../../src/engine/operator/plan.ts";
import { openSession } from "../../../src/engine/run.ts";
import {
  asked,
  benchForEachTest,
  type BenchSpec,
  callOf,
  containers,
  containerWith,
  kinds,
  made,
  NETNS,
  pluginOf,
  plugins,
  type Run,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();
beforeEach(() => {
  containers[NETNS] = containerWith({});
  const refuse = (which: string) => ({ fails }: BenchSpec) => {
    if (fails?.[which] !== undefined) throw new Error(fails[which]);
  };
  kinds["guarded"] = {
    ...kinds["thing"]!,
    kind: "guarded",
    requireRoom: refuse("room"),
    judge: refuse("judge"),
  } as AnyKind;
});
afterEach(() => expect(asked).toEqual([]));

const guarded = (fails: Record<string, string>) => ({ ...made("thing a", { fails }), kind: kinds["guarded"]! });
const plan = (
  list: Parameters<typeof pluginOf>[0],
  { plugin, conf, call }: Run = {},
  prevResult?: Result,
): PluginPlan => {
  const planned = planAdd(pluginOf(list, plugin), callOf("ADD", conf, call), prevResult, [], openSession());
  return { ...planned, obstacles: planned.obstacles.map(errorText) };
};

test("each thing is described, in the order in which it would be made", () => {
  const list = [made("thing a"), made("link b")];
  expect(plan(list)).toEqual({
    list,
    resources: [{ kind: "thing", what: "thing a" }, { kind: "link", what: "link b" }],
    result: { cniVersion: "1.1.0" },
    obstacles: [],
    warnings: [],
  });
});

test("names are chosen, what looks at the host is told, what only ADD can see is left out", () => {
  const plugin: Run["plugin"] = {
    add(at) {
      at.examine(() => {
        throw new Error("examined");
      });
      at.applyAll([
        made(`thing ${at.choose(() => "fresh", () => "recalled")}`),
        made(`thing ${at.examine(() => "seen")}`),
      ]);
      return { cniVersion: "1.1.0", interfaces: [{ name: String(at.inAdd(() => "inside")) }] };
    },
  };
  expect(plan([], { plugin })).toMatchObject({
    resources: [{ what: "thing fresh" }, { what: "thing seen" }],
    result: { interfaces: [{ name: "undefined" }] },
    obstacles: ["examined"],
  });
});

test("a plugin sees what earlier ones would make", () => {
  const thing = made("thing b");
  let seen: readonly unknown[] = [];
  const plugin: Run["plugin"] = {
    add(at) {
      seen = at.plannedBefore("thing");
      return { cniVersion: "1.1.0" };
    },
  };
  planAdd(pluginOf([], plugin), callOf("ADD"), undefined, [made("link a"), thing], openSession());
  expect(seen).toEqual([thing.spec]);
});

test("a plugin that cannot say its result foresees it", () => {
  const foreseen = { cniVersion: "1.1.0", ips: [] };
  expect(plan([made("thing a")], { plugin: { foresee: () => foreseen } })).toMatchObject({
    resources: [],
    result: foreseen,
  });
});

describe("obstacles", () => {
  test("what would be refused of the call, and what a thing lacks", () => {
    const judge: NonNullable<Run["plugin"]>["judge"] = () => {
      throw new CniError(7, "refused", "because");
    };
    expect(plan([], { plugin: { judge } }).obstacles).toEqual(["refused; because"]);
    expect(plan([], { plugin: { missingPrevResult: "must be chained" } }).obstacles).toEqual([
      'must be chained; there is no prevResult; in a list, it stands behind the plugin that makes the interface, such as "bridge"',
    ]);
    const given: Result = { cniVersion: "1.1.0" };
    expect(plan([], { plugin: { missingPrevResult: "must be chained" } }, given).obstacles).toEqual([]);
    expect(plan([guarded({ room: "no room" }), guarded({ judge: "not so" }), made("thing c")]).obstacles).toEqual([
      "no room",
      "not so",
    ]);
  });

  const status = (error: Error) => ({
    plugin: {
      status: () => {
        throw error;
      },
    },
  });

  test("errors of STATUS, unless they say of a thing what is said already", () => {
    expect(plan([made("thing a")], status(new Error("not ready"))).obstacles).toEqual(["not ready"]);
    expect(plan([guarded({ room: "no room" })], status(new Error("not ready"))).obstacles).toEqual(["no room"]);
    const old = { conf: { cniVersion: "0.4.0" } };
    expect(plan([made("thing a")], { ...old, ...status(new Error("not ready")) }).obstacles).toEqual(["not ready"]);
  });

  test("what an earlier ADD met is a warning", () => {
    const { obstacles, warnings } = plan([], status(new EarlierFailure(50, "no lease then")));
    expect({ obstacles, warnings }).toEqual({ obstacles: [], warnings: ["no lease then"] });
  });

  const taken = { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: NETNS }] };
  const inUse = '"eth0" already exists in the container; an earlier plugin of the network makes it';
  const rows: [what: string, list: string, ifName: string, prevResult: Result | undefined, obstacles: string[]][] = [
    ["an earlier plugin makes the interface", "link a", "eth0", taken, [inUse]],
    ["it makes another one", "link a", "eth1", taken, []],
    ["it makes the one on the host", "link a", "eth0", { ...taken, interfaces: [{ name: "eth0" }] }, []],
    ["there is no earlier one", "link a", "eth0", undefined, []],
    ["this one makes no link", "thing a", "eth0", taken, []],
    ["the name is no link's", "link a", "all", undefined, ['"all" is the name of no link: invalid argument']],
    ["the name is no link's either", "link a", "default", taken, [
      '"default" is the name of no link: invalid argument',
    ]],
  ];
  test.each(rows)("%s", (_, thing, ifName, prevResult, obstacles) => {
    expect(plan([made(thing)], { call: { ifName } }, prevResult).obstacles).toEqual(obstacles);
  });
});

describe("addresses", () => {
  const withIpam = (type: string) => ({
    conf: { ipam: { type } },
    plugin: pluginOf([], { add: (at) => at.ipam()!.add() }),
  });

  test("are those that the IPAM plugin would give, with its obstacles", () => {
    const ips = [{ address: "10.0.0.9/24" }];
    plugins["pool"] = pluginOf([], {
      name: "pool",
      add: () => ({ cniVersion: "1.1.0", ips }),
      // STATUS has no call.
      judge: (_, call) => {
        if (call !== undefined) throw new Error("the pool is full");
      },
    });
    expect(plan([], withIpam("pool"))).toMatchObject({
      resources: [{ kind: "ipam", what: "addresses leased by pool" }],
      result: { ips },
      obstacles: ["the pool is full"],
    });
  });

  test("of another program nobody knows", async () => {
    await Bun.write(`${bench.directory}/bin/foreign`, "");
    const how = withIpam("foreign");
    const { result, obstacles } = plan([], { ...how, call: { path: `${bench.directory}/bin` } });
    expect({ result, obstacles: obstacles.length }).toEqual({ result: { cniVersion: "", ips: [] }, obstacles: 1 });
  });
});

test("a namespace that is not there, unless the plugin has nothing in it", () => {
  delete containers[NETNS];
  expect(() => plan([made("thing a")])).toThrow(`failed to open netns "${NETNS}"`);
  expect(plan([made("thing a")], { plugin: { keepsNothing: true } }).obstacles).toEqual([]);
});
