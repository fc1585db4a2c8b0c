/** CHECK: which list is compared with the kernel, and what is told. */
import { describe, expect, test } from "bun:test";
import type { Resource } from "../../../src/contract/resource.ts";
import { NEXT_STEP } from "../../../src/engine/ledger/newer.ts";
import {
  answerWith,
  benchForEachTest,
  confirmed,
  containerWith,
  made,
  NETNS,
  prevResult,
  recorded,
  type Run,
  run,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

const check = (list: Resource<unknown>[], how?: Run) => run("CHECK", list, how);
const ips = [{ address: "10.0.0.5/24" }];

describe("what is compared", () => {
  test("without a ledger, what the configuration says, each thing once", () => {
    const twice = [made("thing a"), made("link b"), made("thing a"), made("thing b")];
    expect(check(twice, confirmed)).toEqual([
      "verify thing a restated",
      "verify link b restated",
      "verify thing b restated",
    ]);
  });

  test("so is it with the ledger of another ADD", () => {
    recorded([made("thing a")], {}, answerWith("veth2"));
    expect(check([made("thing now")], confirmed)).toEqual(["verify thing now restated"]);
  });

  test("with the ledger of this ADD what that records, and the addresses of prevResult", () => {
    recorded([made("thing a"), made("addresses a", { ips })], {}, answerWith("veth1"));
    const now = [made("thing now"), made("addresses a", { ips }), made("addresses now", { ips })];
    expect(check(now, confirmed)).toEqual([
      "verify thing a",
      "verify addresses a",
      "verify addresses now restated",
    ]);
  });

  test("what a newer release recorded cannot be: CHECK says so, and compares the rest", () => {
    const unknown = { kind: { ...made("thing x").kind, kind: "of-tomorrow" }, spec: {} };
    recorded([unknown, made("thing a")], {}, answerWith("veth1"));
    expect(check([], confirmed)).toEqual([
      "verify thing a",
      `ledger ${bench.directory}/net/ctr@eth0@test holds a resource of unknown kind "of-tomorrow"; ${NEXT_STEP}`,
    ]);
  });

  test("nor can a ledger in a newer format, whatever it answers: CHECK says so, and goes by the configuration", () => {
    recorded([made("thing a")], { patchbay: 2 }, answerWith("veth2"));
    expect(check([made("thing now")], confirmed)).toEqual([
      "verify thing now restated",
      `ledger ${bench.directory}/net/ctr@eth0@test is in format 2; ${NEXT_STEP}`,
    ]);
  });
});

describe("what is told", () => {
  test("all differences together, those of the plugin first, each once", () => {
    const list = [made("thing a", { differs: ["one", "two"] }), made("thing b", { differs: ["two", "three"] })];
    expect(check(list, { ...confirmed, plugin: { check: () => ["zero", "one"] } }).at(-1)).toBe(
      "zero; one; two; three",
    );
    expect(check([made("thing a", { differs: ["alone"] })], confirmed).at(-1)).toBe("alone");
  });

  test("a missing prevResult, unless the plugin needs none", () => {
    expect(check([made("thing a")])).toEqual(["Required prevResult missing"]);
    expect(check([made("thing a")], { plugin: { checksWithoutPrevResult: true } })).toEqual([
      "verify thing a restated",
    ]);
  });

  test("what ADD would refuse", () => {
    const judge: NonNullable<Run["plugin"]>["judge"] = (_, call) => {
      throw new Error(`refused for ${call?.ifName} of ${call?.prevResult?.ips?.[0]?.address}`);
    };
    expect(check([made("thing a")], { ...confirmed, plugin: { judge } })).toEqual([
      "refused for eth0 of 10.0.0.5/24",
    ]);
  });

  test("a namespace that is gone, except where the plugin has nothing in it", () => {
    expect(check([made("thing a")], { ...confirmed, isGone: true })).toEqual([
      `failed to open netns "${NETNS}": failed to Statfs "${NETNS}": no such file or directory; ` +
      "CNI_NETNS must be the path of a network namespace",
    ]);
    const plugin = { del: () => {} };
    expect(check([made("thing a")], { ...confirmed, isGone: true, plugin })).toEqual([
      "verify thing a restated outside",
    ]);
  });
});

describe("the container's link", () => {
  const inside = prevResult.interfaces![1]!, mac = "02:00:00:00:00:0a", another = "02:00:00:00:00:0b";
  const rows: [what: string, links: Record<string, string>, interfaces: unknown[], says: string | undefined][] = [
    ["it is the one", { eth0: mac }, [inside], undefined],
    ["its MAC is written in capitals", { eth0: mac }, [{ ...inside, mac: mac.toUpperCase() }], undefined],
    ["it is not there", {}, [inside], undefined],
    ["no MAC is given", { eth0: mac }, [{ ...inside, mac: undefined }], undefined],
    [
      "it is another one",
      { eth0: another, eth1: mac },
      [inside],
      `Interface eth0 Mac ${mac} doesn't match container Mac: ${another}`,
    ],
    [
      "the result is of another namespace",
      { eth0: mac },
      [{ ...inside, sandbox: "/run/netns/y" }],
      `Sandbox in prevResult /run/netns/y doesn't match configured netns: ${NETNS}`,
    ],
    [
      "the result has it on the host",
      { eth0: mac },
      [{ ...inside, sandbox: undefined }],
      `Sandbox in prevResult  doesn't match configured netns: ${NETNS}`,
    ],
    ["the result has others beside it", { eth0: mac }, [
      { ...inside, sandbox: "/run/netns/y", mac: another },
      inside,
      { name: "eth0", mac: another },
      { ...inside, name: "eth1", mac: another },
    ], undefined],
  ];
  test.each(rows)("%s", (_, links, interfaces, says) => {
    const how = { conf: { prevResult: { ...prevResult, interfaces } }, container: containerWith(links) };
    expect(check([made("link a")], how)).toEqual(["verify link a restated", ...says === undefined ? [] : [says]]);
    expect(check([made("thing a")], how)).toEqual(["verify thing a restated"]);
  });
});
