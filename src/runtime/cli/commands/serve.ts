/** `patchbay serve`. */
import type { Command } from "../command.ts";

export const serveCommand: Command = {
  summary: "stay, and serve the calls of this program, so that they need not start it each time",
  operands: "",
  operandCount: [0, 0],
  needsRoot: true,
  options: {},
  notes: "Calls that it cannot serve, and all calls when it is gone, run by themselves.\n",
  run: (_given, _program, serve) => serve(),
};
