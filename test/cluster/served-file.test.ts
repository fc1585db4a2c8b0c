/** What is served, as it is written down for ADD and read again. */
import { expect, test } from "bun:test";
import { servedFrom, servedText } from "../../src/cluster/served-file.ts";
import { type GivenPool, servedPoolOf } from "../support/served-pool.ts";

const pools: [string, GivenPool][] = [
  ["a flat pool", {}],
  ["a flat pool without a gateway", { ranges: [{ cidr: "10.1.0.0/24", blockSize: 8 }], blocks: [0, 3] }],
  ["no block", { blocks: [] }],
  ["holes", { ranges: [{ cidr: "10.1.0.0/24", blockSize: 16, exclude: ["10.1.0.4/30"] }], blocks: [0, 1] }],
  [
    "a routed pool of two families",
    {
      layout: "routed",
      ranges: [{ cidr: "10.64.0.0/16", blockLength: 26 }, { cidr: "fd64::/48", blockLength: 64 }],
      blocks: [2, 1000],
    },
  ],
  ["blocks without a gateway", { layout: "routed", ranges: [{ cidr: "fd64::/112", blockLength: 128 }], blocks: [7] }],
  [
    "what the agent says beside",
    { routes: [{ dst: "0.0.0.0/0" }], change: { obstacle: "it is closed", silent: { since: 7, why: "refused" } } },
  ],
];

test.each(pools)("comes back as it was: %s", (_, given) => {
  const served = servedPoolOf(given);
  expect(servedFrom(servedText(served))).toEqual({ format: 1, ...served });
});

test("a thousand blocks take 17 KB", () => {
  const blocks = Array.from({ length: 1024 }, (_, index) => index), ranges = [{ cidr: "10.0.0.0/8", blockSize: 16 }];
  const text = servedText(servedPoolOf({ ranges, blocks }));
  expect([text.length < 17_500, servedFrom(text).spans[0]!.length]).toEqual([true, 1024 * 16]);
});

test.each(["[]", "7", "{}", '{"format":2}', '{"ranges":[],"blocks":{}}'])("not of this version: %s", (text) => {
  expect(() => servedFrom(text)).toThrow("it is of another version of this program");
});
