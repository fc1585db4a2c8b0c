/** The order of a run: long files first, and the virtual machine when enough tests wait for it. */
import { expect, test } from "bun:test";
import { type Durations, Queue, type Step } from "./queue.ts";

/** Steps in the order in which they start, when each takes as long as recorded, and when all is done. */
function play(durations: Durations, workers: number, usesVm = true) {
  const queue = new Queue(Object.keys(durations).map((file) => [file]), durations, { jobs: workers, usesVm });
  const order: string[] = [];
  let running: { step: Step; end: number }[] = [];
  let now = 0;
  for (;;) {
    for (let step = queue.next(); step !== undefined && step !== "wait"; step = queue.next()) {
      const { files, on } = step;
      order.push(on === "vm" ? `vm: ${files.join(", ")}` : files[0]!);
      const seconds = files.reduce((sum, file) => sum + (durations[file]![on] ?? 0), on === "vm" ? 10 : 0);
      running.push({ step, end: now + seconds });
    }
    if (running.length === 0) return { order, end: now };
    const [first] = running.toSorted((a, b) => a.end - b.end);
    now = first!.end;
    running = running.filter((one) => one !== first);
    queue.done(first!.step, durations[first!.step.files[0]!]!.vm === undefined ? 0 : 1);
  }
}

test("long files first, the time in the virtual machine included", () => {
  const durations = { a: { here: 5 }, b: { here: 20 }, c: { here: 1, vm: 30 }, d: { here: 9 } };
  expect(play(durations, 1).order).toEqual(["c", "vm: c", "b", "d", "a"]);
});

test("tests for the virtual machine go there together, before what takes less time than they do", () => {
  const durations = { a: { here: 100 }, b: { here: 2, vm: 40 }, c: { here: 2, vm: 45 }, d: { here: 50 } };
  expect(play(durations, 1).order).toEqual(["b", "c", "a", "vm: b, c", "d"]);
  expect(play(durations, 2).order).toEqual(["b", "c", "a", "vm: b, c", "d"]);
});

test("tests for the virtual machine that come late go there by themselves, after it has ended", () => {
  const durations = { a: { here: 200, vm: 20 }, b: { here: 2, vm: 300 }, c: { here: 2 } };
  expect(play(durations, 2)).toEqual({ order: ["b", "a", "vm: b", "c", "vm: a"], end: 312 + 30 });
});

test("what waits runs beside what works, a fifth more than the processors can, and alone with one job", () => {
  const durations = { a: { here: 100, busy: 90 }, b: { here: 80, busy: 4 }, c: { here: 60, busy: 60 } };
  const more = { ...durations, d: { here: 50, busy: 30 }, e: { here: 40, busy: 0 }, f: { here: 5 } };
  expect(play(more, 2)).toEqual({ order: ["a", "b", "c", "e", "d", "f"], end: 110 });
  expect(play(durations, 1)).toEqual({ order: ["a", "b", "c"], end: 240 });
});

test("what only waits runs four times as often at a time as there are processors, and no more", () => {
  const waiting = Object.fromEntries([..."abcdefghi"].map((name) => [name, { here: 10, busy: 0 }]));
  expect(play(waiting, 2).end).toBe(20);
  const { i: _, ...eight } = waiting;
  expect(play(eight, 2).end).toBe(10);
});

test("what is left out does not run, but for what the machine has work with already", () => {
  const durations = { a: { here: 9, vm: 300 }, b: { here: 5 }, c: { here: 4 } };
  const queue = new Queue(Object.keys(durations).map((file) => [file]), durations, { jobs: 1, usesVm: true });
  const first = queue.next() as Step;
  expect(queue.leaveOut()).toEqual(["b", "c"]);
  queue.done(first, 1);
  const second = queue.next() as Step;
  expect([first.files, second]).toMatchObject([["a"], { files: ["a"], on: "vm" }]);
  queue.done(second, 0);
  expect(queue.next()).toBeUndefined();
});

test("without the virtual machine, what is skipped is only skipped", () => {
  expect(play({ a: { here: 5, vm: 10 }, b: { here: 2 } }, 2, false).order).toEqual(["a", "b"]);
});

test("every file runs once, and two processors take little more than half the time", () => {
  const durations: Durations = {};
  for (let index = 0; index < 40; index++) {
    durations[`f${index}`] = { here: 1 + index, vm: index % 5 ? undefined : 7 };
  }
  const one = play(durations, 1), two = play(durations, 2);
  for (const { order } of [one, two]) {
    expect(order.filter((step) => !step.startsWith("vm")).sort()).toEqual(Object.keys(durations).sort());
    const inVm = order.filter((step) => step.startsWith("vm: ")).flatMap((step) => step.slice(4).split(", "));
    expect(inVm.sort()).toEqual(Object.keys(durations).filter((file) => durations[file]!.vm !== undefined).sort());
  }
  expect(two.end).toBeLessThan(one.end * 0.6);
});
