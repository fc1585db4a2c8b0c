/** Missing rules are found in any order, with few comparisons when the order is the same. */
import { expect, test } from "bun:test";
import type { IptablesRule } from "../../../src/interop/iptables/rule.ts";
import { missingAmong, type PresentRule } from "../../../src/interop/iptables/table.ts";

const rule = (destinationPort: number): IptablesRule => ({ protocol: "tcp", destinationPort, target: "ACCEPT" });

test("missing rules are found whatever the order, and with few comparisons where it is the same", () => {
  let comparisons = 0;
  const found = (ports: number[]) =>
    ports.map((port) =>
      ({ is: (rule: IptablesRule) => (comparisons++, rule.destinationPort === port) }) as PresentRule
    );
  const portsMissing = (wanted: number[], ports: number[]) =>
    missingAmong(found(ports), wanted.map(rule)).map(({ destinationPort }) => destinationPort);
  expect(portsMissing([1, 2, 3], [3, 9, 1, 2])).toEqual([]);
  expect(portsMissing([1, 2, 3], [2])).toEqual([1, 3]);
  expect(portsMissing([1], [])).toEqual([1]);
  const many = Array.from({ length: 1000 }, (_, index) => index + 1);
  comparisons = 0;
  expect(portsMissing(many, many.filter((port) => port !== 1 && port !== 500))).toEqual([1, 500]);
  expect(comparisons).toBeLessThan(4000);
});
