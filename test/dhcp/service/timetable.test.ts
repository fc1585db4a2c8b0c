/** When each of many is due: the same answers as looking at all of them. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Timetable } from "../../../src/dhcp/service/timetable.ts";

test("is what a plain list says, whatever is set, deleted and taken in between", () => {
  const step = fc.oneof(
    fc.record({ what: fc.constant("set" as const), item: fc.nat(20), due: fc.nat(50) }),
    fc.record({ what: fc.constant("delete" as const), item: fc.nat(20), due: fc.constant(0) }),
    fc.record({ what: fc.constant("take" as const), item: fc.constant(0), due: fc.nat(50) }),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
    const table = new Timetable<number>(), plain = new Map<number, number>();
    for (const { what, item, due } of steps) {
      if (what === "set") {
        table.set(item, due);
        plain.set(item, due);
      } else if (what === "delete") {
        table.delete(item);
        plain.delete(item);
      } else {
        const wanted = [...plain].filter(([, at]) => at <= due).map(([one]) => one);
        const taken = table.takeDue(due);
        expect(taken.toSorted()).toEqual(wanted.toSorted());
        expect(taken.map((one) => plain.get(one)!)).toEqual(
          wanted.map((one) => plain.get(one)!).toSorted((a, b) => a - b),
        );
        for (const one of wanted) plain.delete(one);
      }
      expect(table.earliest()).toBe(Math.min(Infinity, ...plain.values()));
    }
  }));
});

test("an item that is never due is there all the same", () => {
  const table = new Timetable<string>();
  table.set("a", Infinity);
  expect([table.earliest(), table.takeDue(1e9)]).toEqual([Infinity, []]);
  table.set("a", 5);
  expect(table.takeDue(5)).toEqual(["a"]);
});
