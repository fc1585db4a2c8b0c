/** What of an attachment has no effect: which resources are asked, and of which ADD. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { PortClaimant } from "../../../src/contract/host-ports.ts";
import type { Host } from "../../../src/contract/host.ts";
import type { AnyKind } from "../../../src/contract/resource.ts";
import { idleLines, idlePorts, whatIsIdle } from "../../../src/engine/operator/idle.ts";
import { inspectResource } from "../../../src/engine/operator/inspect.ts";
import * as rivals from "../../../src/resources/host-ports/rivals.ts";
import {
  answerWith,
  benchForEachTest,
  type BenchSpec,
  hostWith,
  kinds,
  made,
  opens,
  owner,
  recorded,
} from "../../support/engine-bench.ts";
import { replacedExports } from "../../support/replaced-exports.ts";

const replaced = replacedExports(require.resolve("../../../src/resources/host-ports/rivals.ts"), rivals, {
  idleBecauseOfRivals: ({ containerId }: PortClaimant, { container }: Host) => ({
    here: [`${containerId} has none, ${container}`],
    elsewhere: [`another has none because of ${containerId}`],
  }),
});

benchForEachTest();
beforeEach(() => {
  replaced.begin();
  const claimedPorts = ({ name }: BenchSpec) => ({ network: "net", containerId: name, way: "iptables", claims: [] });
  kinds["ports"] = { ...kinds["thing"]!, kind: "ports", claimedPorts } as AnyKind;
});
afterEach(() => replaced.end());

const host = hostWith(undefined) as Host;
const ports = (name: string) => ({ ...made(`thing ${name}`), kind: kinds["ports"]! });

test("ports are asked for, and nothing else", () => {
  const found = idlePorts(kinds["ports"], { name: "a" }, host);
  expect(found).toEqual({ here: ["a has none, undefined"], elsewhere: ["another has none because of a"] });
  expect(idleLines(kinds["ports"], { name: "a" }, host)).toEqual([...found.here, ...found.elsewhere]);
  for (const kind of [kinds["thing"], undefined]) {
    expect(idlePorts(kind, { name: "a" }, host)).toEqual({ here: [], elsewhere: [] });
  }
  const { state, differences } = inspectResource({ name: "ports", kind: kinds["ports"]!, spec: { name: "a" } }, host);
  expect({ state, differences }).toEqual({ state: "differs", differences: found.here });
});

test("of an attachment, the last ADD of each plugin counts, and the host is opened once", () => {
  recorded([ports("before")], {}, answerWith("veth1"));
  recorded([made("thing x"), ports("a"), ports("b")], {}, answerWith("veth1"));
  recorded([ports("c")], { plugin: "second" });
  recorded([ports("other")], { containerId: "other" });
  const idle = whatIsIdle(owner, "");
  expect(idle.filter((line) => !line.startsWith("another")).sort()).toEqual([
    "a has none, undefined",
    "b has none, undefined",
    "c has none, undefined",
  ]);
  expect(idle).toHaveLength(6);
  const shown = opens.map((line) => line.trim());
  expect([shown[0], shown.at(-1), shown.filter((line) => line === "open").length]).toEqual(["open", "close", 1]);
});
