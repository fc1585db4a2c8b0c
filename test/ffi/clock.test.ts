/** The clock that counts from boot on, and its alarm. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Alarm, preciseSecondsSinceBoot, secondsSinceBoot } from "../../src/ffi/clock.ts";
import { closeFile } from "../../src/ffi/files.ts";
import { poll, POLLIN } from "../../src/ffi/poll.ts";

/** In hundredths of a second, cut off. */
const uptime = () => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);

test("the time is the kernel's, with its fraction or without", () => {
  for (let round = 0; round < 100; round++) {
    const before = uptime(), precise = preciseSecondsSinceBoot(), whole = secondsSinceBoot(), after = uptime() + 0.01;
    expect(precise).toBeGreaterThanOrEqual(before);
    expect(precise).toBeLessThanOrEqual(after);
    expect(whole).toBeGreaterThanOrEqual(Math.floor(precise));
    expect(whole).toBeLessThanOrEqual(after);
    expect(Number.isInteger(whole)).toBe(true);
  }
});

test("an alarm goes off when its time has come, and not before it is set", () => {
  const alarm = new Alarm();
  const hasGoneOff = (timeoutMs = 0) => poll([{ fd: alarm.fd, events: POLLIN }], timeoutMs).size > 0;
  try {
    expect(hasGoneOff()).toBe(false);
    alarm.set(preciseSecondsSinceBoot() + 1000);
    expect(hasGoneOff()).toBe(false);
    // Times that are over, with every fraction that a second has.
    for (const past of [1, 0.5, 1.999_999_999_9, preciseSecondsSinceBoot()]) {
      alarm.set(past);
      expect(hasGoneOff(-1)).toBe(true);
      alarm.silence();
      expect(hasGoneOff()).toBe(false);
    }
    // The same time once more goes off once more, when the first has been heard.
    for (const round of ["first", "second"]) {
      alarm.set(1);
      expect([round, hasGoneOff(-1)]).toEqual([round, true]);
      alarm.silence();
    }
    alarm.set(1);
    alarm.set(Infinity);
    expect(hasGoneOff()).toBe(false);

    const soon = preciseSecondsSinceBoot() + 0.02;
    alarm.set(soon);
    expect(hasGoneOff(-1)).toBe(true);
    expect(preciseSecondsSinceBoot()).toBeGreaterThanOrEqual(soon);
  } finally {
    closeFile(alarm.fd);
  }
});
