/** A namespace ends a moment after its last mount and process, on a busy machine a long one. */
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";
import { untilTrue } from "./until-true.ts";

/** Returns when exactly this many attachments of a machine are seen as those of containers that are gone. */
export async function untilGone(machine: Machine, count = 1): Promise<void> {
  const states = async (): Promise<string[]> => {
    const { stdout } = await machine.run([PATCHBAY, "inspect", "--json"]);
    return (JSON.parse(stdout) as { state: string }[]).map(({ state }) => state);
  };
  await untilTrue(states, (all) => all.filter((state) => state === "gone").length === count);
}
