/** The text of `npm run pod-start`: what a network costs, or that the samples cannot tell. The data has the numbers. */
import { expect, test } from "bun:test";
import { formatRows, rowsOf } from "../../../bench/pod-start/report.ts";
import type { Environment } from "../../../bench/report.ts";

/** The figures of ours, from samples in milliseconds; a start and an end take the same. */
function ours(none: number[], more: number[]) {
  const samples = (times: number[]) => ({ start: times, end: times, left: 0 });
  const rows = rowsOf({ none: samples(none), ours: samples(more) });
  const engine = { engine: "e", version: "1", byResident: false, theirs: undefined, rows };
  const text = formatRows({} as Environment, [engine]);
  return { rows, cells: /^ {2}ours +(.*)$/m.exec(text)![1]!.split(/ {2,}/), text };
}

const around = (middle: number, width: number) =>
  Array.from({ length: 20 }, (_, at) => middle + width * (at / 19 - 0.5));

test.each([
  ["less than none, in one container", [300], [235]],
  ["less than none, in many", around(300, 40), around(290, 40)],
  ["as much", [300], [300]],
  ["more, by less than the samples vary", around(300, 100), around(310, 100)],
  ["a little more, in one container", [300], [320]],
  ["a little more, in three containers alike", [300, 301, 302], [310, 311, 312]],
  ["more, in two containers far apart", [200, 400], [230, 450]],
])("%s is within noise", (_, none, more) => {
  const { rows, cells, text } = ours(none, more);
  expect([cells[3], cells[5]]).toEqual(["within noise", "within noise"]);
  expect(text).not.toMatch(/-\d| %/);
  expect(rows.ours.network.start).toBe(rows.ours.start.median - rows.none.start.median);
  expect(rows.ours.share).toBe(rows.ours.network.start / rows.ours.start.median);
});

test.each([
  ["in one container", [300], [400]],
  ["in many", around(300, 100), around(400, 100)],
  ["a little, by samples that vary less", around(300, 2), around(303, 2)],
])("more, %s, is a number", (_, none, more) => {
  const { cells } = ours(none, more);
  expect(cells[3]).toMatch(/^[\d.]+$/);
  expect(cells[4]).toMatch(/^\d+ %$/);
  expect(cells[6]).toMatch(/^[\d.]+$/);
});

test.each([
  ["a little faster, in two containers", [300, 301], [310, 311], "which of the two takes longer is within noise"],
  ["a little slower, in two containers", [310, 311], [300, 301], "which of the two takes longer is within noise"],
  ["faster", [300], [400], "a start with ours takes 0.75 of one with theirs"],
  ["slower", around(300, 2), around(200, 2), "a start with ours takes 1.50 of one with theirs"],
])("beside theirs, %s", (_, ours, theirs, says) => {
  const samples = (times: number[]) => ({ start: times, end: times, left: 0 });
  const rows = rowsOf({ none: samples([100]), ours: samples(ours), theirs: samples(theirs) });
  const engine = { engine: "e", version: "1", byResident: false, theirs: "/theirs", rows };
  expect(formatRows({} as Environment, [engine])).toContain(`theirs is /theirs; ${says}\n`);
});
