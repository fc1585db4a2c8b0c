/** What the ledgers of other attachments claim: the interface, or a thing without an owner; and what is given up. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  claimedByOthers,
  isAnotherContainers,
  ledgersOfSameInterface,
  recordedByOthers,
} from "../../../src/engine/ledger/claims.ts";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import type { LedgerHeader } from "../../../src/engine/ledger/record.ts";
import { listDirectory } from "../../../src/ffi/files.ts";
import { benchForEachTest, made, owner, recorded } from "../../support/engine-bench.ts";

const bench = benchForEachTest();

const THERE = "/proc/self/ns/net";
const others: Partial<LedgerHeader>[] = [{ containerId: "other" }, { ifName: "eth1" }, { network: "other" }];
const names = (specs: unknown[]) => specs.map((spec) => (spec as { name: string }).name);

test("rivals are of the same interface of the same container, in other networks", () => {
  recorded([made("thing own")]);
  for (const header of others) recorded([made("thing x")], header);
  recorded([made("thing x")], { network: "other", plugin: "second" });
  recorded([made("thing x")], { network: "other", containerId: "other" });
  recorded([made("thing x")], { network: "other", ifName: "eth1" });
  expect(ledgersOfSameInterface(owner).map(({ header: { network, plugin } }) => `${network} ${plugin}`)).toEqual([
    "other second",
    "other test",
  ]);
});

test("of long names, too, those that begin alike are told apart", () => {
  const long = { containerId: "x".repeat(210), ifName: "eth0" };
  recorded([made("thing x")], { ...long, network: "other" });
  recorded([made("thing x")], { ...long, network: "other", containerId: `${long.containerId}y` });
  recorded([made("thing x")], { ...long, network: "other", ifName: "eth1" });
  expect(ledgersOfSameInterface({ ...long, network: "net" })).toHaveLength(1);
});

test("an interface is another container's where its ledger has the namespace", () => {
  recorded([made("thing own")], { netns: "1" });
  expect(isAnotherContainers(owner, "1")).toBe(false);
  recorded([made("thing x")], { netns: "1", containerId: "other", ifName: "eth1" });
  recorded([made("thing x")], { netns: "2", containerId: "other" });
  expect([isAnotherContainers(owner, "1"), isAnotherContainers(owner, "2")]).toEqual([false, true]);
});

describe("a thing without an owner", () => {
  test("is claimed by others that recorded that kind, in every attachment but this one", () => {
    recorded([made("thing own")], { netnsPath: THERE });
    recorded([made("thing own-too")], { netnsPath: THERE, plugin: "second" });
    for (const header of others) recorded([made("link x"), made("thing theirs")], { ...header, netnsPath: THERE });
    const theirs = ["theirs", "theirs", "theirs"];
    expect(names(recordedByOthers("thing", owner))).toEqual(theirs);
    expect(names(claimedByOthers("thing", owner))).toEqual(theirs);
  });

  test("is given up by this one first, once, in each ledger that has the kind", () => {
    recorded([made("thing own"), made("link own")], { netnsPath: THERE });
    recorded([made("link own")], { netnsPath: THERE, plugin: "second" });
    recorded([made("thing theirs")], { network: "other", netnsPath: THERE });
    const texts = () => bench.ledgers().map((path) => readFileSync(`${bench.directory}/${path}`, "utf8"));
    const before = texts(), open = listDirectory("/proc/self/fd").length;
    for (let time = 0; time < 2; time++) claimedByOthers("thing", owner);
    const givenUp = bench.ledgers().indexOf("net/ctr@eth0@test");
    expect(texts()).toEqual(before.with(givenUp, `${before[givenUp]}\n{"givenUp":"thing"}\n`));
    expect(listDirectory("/proc/self/fd").length).toBe(open);
    expect(readLedger(owner, "test")!.entries).toEqual([
      { kind: "thing", spec: { name: "own" }, givenUp: true },
      { kind: "link", spec: { name: "own" } },
    ]);
    expect(names(claimedByOthers("thing", { ...owner, network: "other" }))).toEqual([]);
    expect(names(recordedByOthers("link", { ...owner, network: "other" }))).toEqual(["own", "own"]);
  });

  test("is claimed by nobody whose namespace is gone, unless it is another host's to judge", () => {
    recorded([made("thing gone")], { containerId: "gone", netnsPath: "/run/netns/none" });
    recorded([made("thing there")], { containerId: "there", netnsPath: THERE });
    recorded([made("thing away")], { containerId: "away", netnsPath: "/run/netns/none", hostNetns: "another" });
    recorded([made("thing unseen")], { containerId: "unseen", netnsPath: `${THERE}/none` });
    expect(names(claimedByOthers("thing", owner)).sort()).toEqual(["away", "there", "unseen"]);
    expect(recordedByOthers("thing", owner)).toHaveLength(4);
  });
});
