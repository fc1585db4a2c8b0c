/** When a lease of the journal began and ends, on clocks that may have been set meanwhile. */
import { expect, test } from "bun:test";
import { beginningOf, stampsOf } from "../../../../src/services/dhcp/journal/record.ts";

const written = stampsOf(900, { boot: 1000, wall: 5000 });

test.each([
  ["the same boot", true, { boot: 1200, wall: 5200 }, 900],
  ["the same boot, the clock was set forth", true, { boot: 1200, wall: 99_000 }, 900],
  ["another boot", false, { boot: 50, wall: 5300 }, -350],
  ["another boot, the clock was set back: it has begun by now", false, { boot: 50, wall: 100 }, 50],
])("%s", (_, isSameBoot, now, since) => {
  expect(written).toEqual({ since: 900, sinceWall: 4900 });
  expect(beginningOf(written, isSameBoot, now)).toBe(since);
});
