/** Pauses between attempts, by a clock that the test turns. */
import { expect, test } from "bun:test";
import { Pause } from "../../../src/services/daemon/pause.ts";

test("a pause is as long as it is said, from now or from before, and ends", () => {
  let now = 0;
  const pause = new Pause(() => now);
  expect(pause.leftMs).toBe(0);
  now = 1000;
  expect(pause.leftMs).toBe(0);
  pause.begin(200);
  expect(pause.leftMs).toBe(200);
  now = 1150;
  expect(pause.leftMs).toBe(50);
  pause.begin(200, 980);
  expect(pause.leftMs).toBe(50);
  pause.begin(200, 1100);
  expect(pause.leftMs).toBe(150);
  now = 1301;
  expect(pause.leftMs).toBe(0);
});

test("its clock is the process's, unless another is given", () => {
  const pause = new Pause();
  pause.begin(1e9);
  expect(pause.leftMs).toBeGreaterThan(1e8);
  expect(pause.leftMs).toBeLessThanOrEqual(1e9);
});
