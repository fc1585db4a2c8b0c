/** A resident in a machine (`patchbay serve`). With PATCHBAY_TEST_RESIDENT=1 every machine has one. */
import type { Subprocess } from "bun";
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

export const SOCKET = "/run/patchbay/serve.sock";

/** Returns when it listens. */
export async function startResident(machine: Machine): Promise<Subprocess> {
  const resident = machine.start([PATCHBAY, "serve"]);
  await machine.sh(`until test -S ${SOCKET}; do sleep 0.01; done`);
  return resident;
}
