/** VLANs of a bridge's port, from `vlan` and `vlanTrunk`. */
import { expect, test } from "bun:test";
import type { BridgeConf } from "../../../../src/plugins/main/bridge/bridge.schema.ts";
import { portVlans } from "../../../../src/plugins/main/bridge/port-vlans.ts";

const of = (vlan: number, vlanTrunk?: BridgeConf["vlanTrunk"]) => portVlans({ vlan, vlanTrunk } as BridgeConf);
const untagged = (vid: number) => ({ first: vid, last: vid, pvid: true, untagged: true });

test("frames without a tag are of the VLAN, or of the first where others have a tag", () => {
  expect(of(0)).toBeUndefined();
  expect(of(0, [])).toEqual([]);
  expect(of(7)).toEqual([untagged(7)]);
  expect(of(7, [])).toEqual([untagged(7)]);
  expect(of(0, [{ id: 5 }])).toEqual([{ first: 5, last: 5 }, untagged(1)]);
  expect(of(7, [{ id: 5 }])).toEqual([{ first: 5, last: 5 }, untagged(7)]);
});

test("ranges that touch become one, in order", () => {
  const ranges = (...trunk: NonNullable<BridgeConf["vlanTrunk"]>) =>
    of(0, trunk)!.slice(0, -1).map(({ first, last }) => [first, last]);
  expect(ranges({ id: 9 }, { minID: 3, maxID: 5 }, { id: 6 })).toEqual([[3, 6], [9, 9]]);
  expect(ranges({ minID: 3, maxID: 5 }, { id: 7 })).toEqual([[3, 5], [7, 7]]);
  expect(ranges({ minID: 1, maxID: 10 }, { minID: 2, maxID: 4 }, { id: 11 })).toEqual([[1, 11]]);
  expect(ranges({ minID: 4, maxID: 4, id: 2 })).toEqual([[2, 2], [4, 4]]);
  expect(ranges({ id: 5 }, { id: 5 })).toEqual([[5, 5]]);
});

test("a range has both of its ends, the lower one first", () => {
  expect(() => of(0, [{ minID: 1 }])).toThrow("maxID is missing");
  expect(() => of(0, [{ maxID: 1 }])).toThrow("minID is missing");
  expect(() => of(0, [{ minID: 2, maxID: 1 }])).toThrow("minID is greater than maxID in trunk parameter");
});
