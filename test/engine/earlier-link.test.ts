/** Two plugins of a network that make one interface: the second's error says so. */
import { expect, test } from "bun:test";
import { CniError } from "../../src/cni/error.ts";
import type { Result } from "../../src/cni/result.ts";
import type { AnyKind } from "../../src/contract/resource.ts";
import { benchForEachTest, kinds, made, run } from "../support/engine-bench.ts";

benchForEachTest();

const inside = { name: "eth0", sandbox: "/run/netns/x" };
const MADE_EARLIER = "an earlier plugin of the network makes it";
const error = new CniError(17, "eth0 is taken", "rename it");
const rows: [
  what: string,
  kind: string,
  thrown: Error,
  interfaces: Result["interfaces"] | number,
  details: string,
][] = [
  ["the first one made it", "link", error, [{ name: "veth1" }, inside], MADE_EARLIER],
  ["it made another", "link", error, [{ ...inside, name: "eth1" }], "rename it"],
  ["it made one of that name on the host", "link", error, [{ name: "eth0" }], "rename it"],
  ["there was no first one", "link", error, undefined, "rename it"],
  ["its result cannot be read", "link", error, 5, "rename it"],
  ["another thing is in the way", "thing", error, [inside], "rename it"],
  ["something else failed", "link", new Error("no memory"), [inside], ""],
];
test.each(rows)("%s", (_, kind, thrown, interfaces, details) => {
  const requireRoom = () => {
    throw thrown;
  };
  const guarded = { ...made(`${kind} a`), kind: { ...kinds[kind]!, requireRoom } as AnyKind };
  const prevResult = interfaces === undefined ? {} : { prevResult: { cniVersion: "1.1.0", interfaces } };
  expect(run("ADD", [guarded], { conf: prevResult })).toEqual([
    [thrown.message, details].filter((text) => text !== "").join("; "),
  ]);
});
