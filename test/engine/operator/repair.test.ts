/** repair: what is restored, what is left as it is, and why. */
import { beforeEach, describe, expect, test } from "bun:test";
import { closeFile, O_RDONLY } from "../../../src/ffi/files.ts";
import { lockShared } from "../../../src/process/lock.ts";
import { openExistingState } from "../../../src/process/state-file.ts";
import type { AnyKind, Resource } from "../../../src/contract/resource.ts";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import type { CachedAttachment } from "../../../src/engine/operator/known-attachment.ts";
import { repair } from "../../../src/engine/operator/repair.ts";
import { NEXT_STEP } from "../../../src/engine/ledger/newer.ts";
import { cachedWith, onlyKnown } from "../../support/cached-attachment.ts";
import {
  answerWith,
  asked,
  benchForEachTest,
  type BenchSpec,
  containers,
  containerWith,
  kinds,
  LONG_NAME,
  made,
  NETNS,
  owner,
  pluginOf,
  plugins,
  prevResult,
  recorded,
} from "../../support/engine-bench.ts";

benchForEachTest();
/** What of the broken things is broken no more. */
let mended: string[];
beforeEach(() => {
  mended = [];
  containers[NETNS] = containerWith({});
  for (const [kind, more] of [["frail", {}], ["frail-link", { isContainerLink: true }]] as const) {
    kinds[kind] = {
      ...kinds["thing"]!,
      ...more,
      kind,
      verify: ({ name }: BenchSpec) => mended.includes(name) ? [] : [`${name} is broken`],
      repair: ({ name, fails }: BenchSpec) => {
        asked.push(`repair ${name}`);
        if (fails !== undefined) throw new Error(`cannot repair ${name}`);
        mended.push(name);
      },
    } as AnyKind;
  }
});

/** `frail a mended: a is broken`, and the reason where there is one. */
function repaired(cached?: CachedAttachment) {
  const { state, plugins } = repair(onlyKnown(cached), "");
  return [
    state,
    ...plugins.flatMap(({ resources }) =>
      resources.map(({ what, state, differences, reason }) =>
        [`${what} ${state}`, ...differences, ...reason === undefined ? [] : [reason]].join(": ")
      )
    ),
  ];
}
const record = (list: Resource<unknown>[], plugin = "test") =>
  recorded(list, { plugin, stdin: `{"type":"${plugin}"}` }, answerWith("veth1"));
const frail = (name: string, more: Partial<BenchSpec> = {}) => ({
  ...made(`thing ${name}`, more),
  kind: kinds["frail"]!,
});
const link = (name: string) => ({ ...made(`thing ${name}`), kind: kinds["frail-link"]! });

test("what differs is restored, and the rest is not touched", () => {
  record([made("thing a"), frail("b")]);
  expect(repaired()).toEqual(["ok", "thing a ok", "thing b mended: b is broken"]);
  expect(asked.filter((line) => line.startsWith("repair"))).toEqual(["repair b"]);
});

test("a link that is restored is no obstacle to what is upon it", () => {
  record([link("a"), frail("b")]);
  expect(repaired()).toEqual(["ok", "thing a mended: a is broken", "thing b mended: b is broken"]);
});

test("what cannot be restored says why, and the others are", () => {
  record([made("thing a", { differs: ["it is gone"] }), frail("b", { fails: {} }), frail("c")]);
  expect(repaired()).toEqual([
    "differs",
    "thing a differs: it is gone: only a DEL and another ADD can",
    "thing b differs: b is broken: cannot repair b",
    "thing c mended: c is broken",
  ]);
});

test("what is not right afterwards is not said to be", () => {
  record([frail("b", { differs: [] })]);
  kinds["frail"] = { ...kinds["frail"]!, repair: () => {} };
  expect(repaired()).toEqual(["differs", "thing b differs: b is broken"]);
});

test("of a kind that is not known nothing is restored", () => {
  record([{ kind: { ...made("thing x").kind, kind: "of-tomorrow" }, spec: {} }]);
  expect(repaired()).toEqual(["differs", `of-tomorrow unknown: ${NEXT_STEP}`]);
});

describe("when the container's link is another one", () => {
  const obstacle = "its link in the container is not the one that was made";

  test("nothing after it is restored, of later plugins neither", () => {
    record([frail("before"), made("link a", { differs: ["another MAC"] }), frail("b"), made("thing c")], "a");
    record([frail("d")], "b");
    expect(repaired()).toEqual([
      "differs",
      "thing before mended: before is broken",
      "link a differs: another MAC: only a DEL and another ADD can",
      `thing b differs: b is broken: ${obstacle}`,
      "thing c ok",
      `thing d differs: d is broken: ${obstacle}`,
    ]);
  });

  test("a link that is right, or another thing that is not, is no obstacle", () => {
    record([made("link a"), made("thing b", { differs: ["gone"] }), frail("c")]);
    expect(repaired()).toEqual([
      "differs",
      "link a ok",
      "thing b differs: gone: only a DEL and another ADD can",
      "thing c mended: c is broken",
    ]);
  });
});

describe("while somebody adds or deletes the attachment", () => {
  test("nothing of that plugin is looked at, and nothing after it restored", () => {
    record([made("link a")], "a");
    record([frail("b")], "b");
    const { fd } = openExistingState(readLedger(owner, "a")!.path, O_RDONLY)!;
    lockShared(fd);
    expect(repaired()).toEqual([
      "differs",
      "thing b differs: b is broken: somebody is adding or deleting the attachment",
    ]);
    closeFile(fd);
    expect(repaired()).toEqual(["ok", "link a ok", "thing b mended: b is broken"]);
  });
});

describe("what others made", () => {
  const inside = { ...prevResult.interfaces![1]!, name: LONG_NAME };
  const cached = cachedWith(["test"], { prevResult: { ...prevResult, interfaces: [inside] } }, { ifName: LONG_NAME });

  test("is restored while the link is there, and only then", () => {
    plugins["test"] = pluginOf([frail("a")]);
    expect(repaired(cached)).toEqual([
      "differs",
      "thing a differs: a is broken: nothing proves that this namespace is the container's",
    ]);
    expect(asked).toEqual([]);
    containers[NETNS] = containerWith({ [LONG_NAME]: "02:00:00:00:00:0a" });
    expect(repaired(cached)).toEqual(["ok", "thing a mended: a is broken"]);
    expect(asked).toEqual(["repair a"]);
  });
});
