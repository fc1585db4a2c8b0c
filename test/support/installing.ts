/** `patchbay` in tests of `install`: neither the machine's own services nor its ledgers have a part in them. */
import type { Outcome } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";
import { runToEnd } from "./run-to-end.ts";

/** `directory`: of the test's own, for the ledgers, which would refuse --uninstall. */
export function patchbayIn(directory: string, args: readonly string[], program = PATCHBAY, cwd?: string): Outcome {
  const unasked = args[0] === "install" && !/--(uninstall|help)/.test(args.join()) ? ["--no-resident"] : [];
  const env = { PATCHBAY_STATE_DIR: `${directory}/ledgers` };
  return runToEnd([program, ...args, ...unasked], { env, ...cwd !== undefined && { cwd } });
}
