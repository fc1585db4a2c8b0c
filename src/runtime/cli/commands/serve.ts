/** `patchbay serve`. */
import { type Command, type Given, UsageError } from "../command.ts";
import { print, printLine } from "../output.ts";

/** Refuses typing errors, and nothing else. */
const MOST_WORKERS = 64;

export const serveCommand: Command = {
  runsByItself: true,
  summary: "stay, and serve the calls of this program, so that they need not start it each time",
  operands: "",
  operandCount: [0, 0],
  needsRoot: (given) => !given.has("status"),
  options: {
    workers: { value: "N", help: "how many calls are served at a time; by default one a processor, and at most 4" },
    dhcp: { help: "also hold the leases of the plugin dhcp, as `patchbay dhcp` does" },
    status: { help: "say what the resident is doing, instead of becoming one" },
    json: { help: "with --status: print JSON" },
  },
  notes: "Calls that it cannot serve, and all calls when it is gone, run by themselves.\n" +
    "Exit status of --status: 0 when calls of this program are served, 1 when they run by themselves.\n",
  run(given, _program, services) {
    if (!given.has("status")) {
      if (given.has("json")) throw new UsageError("--json goes with --status");
      return services.serve(workersIn(given), given.has("dhcp"));
    }
    const { isServing, text, facts } = services.status();
    if (given.has("json")) printLine(JSON.stringify(facts, null, 2));
    else print(text);
    return isServing ? 0 : 1;
  },
};

function workersIn(given: Given): number {
  const text = given.value("workers");
  if (text === undefined) return Math.min(navigator.hardwareConcurrency, 4);
  const workers = Number(text);
  if (/^\d+$/.test(text) && workers >= 1 && workers <= MOST_WORKERS) return workers;
  throw new UsageError(`--workers takes a number from 1 to ${MOST_WORKERS}, not ${text}`);
}
