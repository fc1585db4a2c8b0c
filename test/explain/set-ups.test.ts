/** Each set-up is tried with real packets first, then explained; what is printed mends it. */
import { afterAll, beforeAll, test } from "bun:test";
import { ownShare } from "../support/share.ts";
import { expectStopped } from "./judged.ts";
import { setUps } from "./set-ups.ts";
import { openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

test.each(ownShare(setUps))("$what: $code", async (setUp) => {
  try {
    await expectStopped(town, setUp);
  } finally {
    await town.machine.sh(setUp.undo ?? "true");
    await town.reset();
  }
});
