/** The text of aardvark-dns's files: lines are found by their first field, and torn lines are dropped. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  formatHead,
  gatewaysIn,
  hasLine,
  type Line,
  withLine,
  withoutLine,
  withServers,
} from "../../../../src/resources/netavark/aardvark-names/network-file.ts";

const head = { gateways: ["10.1.0.1", "fd01::1"], servers: [] };
const line = (containerId: string, more: Partial<Line> = {}): Line => ({
  containerId,
  addresses4: ["10.1.0.2"],
  addresses6: [],
  names: ["cup"],
  servers: [],
  ...more,
});

test("the first container makes the head, and the last takes it away", () => {
  const one = withLine("", { ...head, servers: ["9.9.9.9", "1.1.1.1"] }, line("c1"));
  expect(one).toBe("10.1.0.1,fd01::1 9.9.9.9,1.1.1.1\nc1 10.1.0.2  cup\n");
  const two = withLine(
    one,
    head,
    line("c2", { addresses4: [], addresses6: ["fd01::2", "fd01::3"], names: ["a", "b"], servers: ["8.8.8.8"] }),
  );
  expect(two).toBe(`${one}c2  fd01::2,fd01::3 a,b 8.8.8.8\n`);
  expect(withoutLine(two, "c2")).toBe(one);
  expect(withoutLine(one, "c1")).toBe("");
});

test("a container is its first field, and nothing that only contains it", () => {
  const text = "10.1.0.1\nc1 10.1.0.2  c11\nc11 10.1.0.3  c1\nxc1 10.1.0.4  c1,cup 10.1.0.1\n";
  expect(withoutLine(text, "c1")).toBe("10.1.0.1\nc11 10.1.0.3  c1\nxc1 10.1.0.4  c1,cup 10.1.0.1\n");
  expect(withoutLine(text, "c")).toBe(text);
  expect(withoutLine(text, "")).toBe(text);
});

test("who has a line, and where the servers of a network listen", () => {
  const text = "10.1.0.1,fd01::1 9.9.9.9\nc1 10.1.0.2  c2\nc3 10\n";
  expect(["c1", "c2", "c3", "10.1.0.1,fd01::1"].map((id) => hasLine(text, id))).toEqual([true, false, false, false]);
  expect(gatewaysIn(text)).toEqual(["10.1.0.1", "fd01::1"]);
  expect(gatewaysIn("10.1.0.1\n10.1.0.2 10.1.0.3  cup\n")).toEqual(["10.1.0.1"]);
});

test("a container that is there already gets the new line only", () => {
  expect(withLine("10.1.0.1\nc1 10.1.0.2  cup\nc2 10.1.0.3  jug\n", head, line("c1", { addresses4: ["10.1.0.9"] })))
    .toBe(
      "10.1.0.1\nc2 10.1.0.3  jug\nc1 10.1.0.9  cup\n",
    );
});

test("what a crash left is left out", () => {
  expect(withLine("10.1.0.1\nc1 10.1.0.2  cup\nc2 10.1", head, line("c3"))).toBe(
    "10.1.0.1\nc1 10.1.0.2  cup\nc3 10.1.0.2  cup\n",
  );
  for (const torn of ["10.1", "\n", "c1 10.1.0.2  cup\n", "10.1.0.1,\n", "none 9.9.9.9\n"]) {
    expect(withLine(torn, head, line("c3"))).toBe("10.1.0.1,fd01::1\nc3 10.1.0.2  cup\n");
  }
  expect(withoutLine("10.1", "c1")).toBe("");
});

test("servers are all that changes in a head", () => {
  expect(withServers("10.1.0.1,fd01::1 9.9.9.9\nc1 10.1.0.2  cup\n", ["1.1.1.1", "fd09::9"])).toBe(
    "10.1.0.1,fd01::1 1.1.1.1,fd09::9\nc1 10.1.0.2  cup\n",
  );
  expect(withServers("10.1.0.1 9.9.9.9\nc1 10.1.0.2  cup\n", [])).toBe("10.1.0.1\nc1 10.1.0.2  cup\n");
});

const ids = fc.constantFrom("a", "b", "ab", "ba", "aa");

test("whoever comes and goes, the file has exactly those that are there", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), ids), { maxLength: 20 }), (events) => {
      const there = new Set<string>();
      let text = "";
      for (const [comes, id] of events) {
        text = comes ? withLine(text, head, line(id, { names: ["a", "b"] })) : withoutLine(text, id);
        if (comes) there.add(id);
        else there.delete(id);
        const [first, ...lines] = text.split("\n").slice(0, -1);
        expect(first).toBe(there.size === 0 ? undefined : formatHead(head));
        expect(new Set(lines.map((each) => each.split(" ")[0]))).toEqual(there);
        expect(lines.length).toBe(there.size);
        expect(gatewaysIn(text)).toEqual(there.size === 0 ? [] : head.gateways);
      }
    }),
  );
});
