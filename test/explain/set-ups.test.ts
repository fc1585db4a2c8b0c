/** Each set-up is tried with real packets first, then explained; what is printed mends it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { PATCHBAY } from "../support/plugins.ts";
import { ownShare } from "../support/share.ts";
import { untilTrue } from "../support/until-true.ts";
import { setUps } from "./set-ups.ts";
import { openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

test.each(ownShare(setUps))(
  "$what: $code",
  async ({ break: script, ask, code, verdict = "stops", mend, owner, sometimes, undo = "" }) => {
    await town.machine.sh(script);
    try {
      if (sometimes) expect(new Set([await town.isAnswered(ask), await town.isAnswered(ask)]).size).toBe(2);
      else expect(await town.isAnswered(ask)).toBe(false);
      const { said, code: status } = await town.explain(ask);
      expect({ ...said, steps: [] }).toMatchObject({ verdict, cause: { code, ...owner && { owner } } });
      expect(status).toBe(verdict === "stops" ? 1 : 2);
      const printed = said.cause!.mend.flatMap((remedy) => "run" in remedy ? remedy.run : []).slice(0, 1);
      if (mend === "printed") expect(printed).toHaveLength(1);
      const lines = mend === "printed" ? printed[0]! : mend.script;
      if (lines === "") return;
      await town.machine.sh(lines.replaceAll(/^patchbay /g, `${PATCHBAY} `));
      expect(await untilTrue(() => town.isAnswered(ask), Boolean)).toBe(true);
      expect((await town.explain(ask)).said).toMatchObject({ verdict: expect.stringMatching(/arrives|leaves/) });
    } finally {
      await town.machine.sh(undo === "" ? "true" : undo);
      await town.reset();
    }
  },
);
