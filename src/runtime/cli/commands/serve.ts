/** `patchbay serve`. */
import { type Command, type Given, UsageError } from "../command.ts";
import { print, printLine } from "../output.ts";

/** Refuses typing errors, and nothing else. */
const MOST_WORKERS = 64, MOST_SECONDS = 365 * 86400, MOST_REHEARSALS = 10_000;

export const serveCommand: Command = {
  runsByItself: true,
  summary: "stay, and serve the calls of this program, so that they need not start it each time",
  operands: "",
  operandCount: [0, 0],
  needsRoot: (given) => !given.has("status"),
  options: {
    workers: {
      value: "N",
      help:
        "how many workers serve calls; by default one, and while calls wait up to one for each processor, at most 4",
    },
    idle: { value: "SECONDS", help: "end when nobody has called for so long; by default, and with 0, never" },
    rehearsals: {
      value: "N",
      help:
        "how many attachments a new worker makes for practice, in namespaces of its own, while nobody calls; by default 100",
    },
    dhcp: { help: "also hold the leases of the plugin dhcp, as `patchbay dhcp` does" },
    status: { help: "say what the resident is doing, instead of becoming one" },
    json: { help: "with --status: print JSON" },
  },
  notes: "Calls that it cannot serve, and all calls when it is gone, run by themselves.\n",
  exitStatus: "with --status, 0 when calls of this program are served, 1 when they run by themselves.",
  examples: [{ args: "--status", what: "whether calls are served, and what the resident is doing" }],
  run(given, _program, services) {
    if (!given.has("status")) {
      if (given.has("json")) throw new UsageError("--json goes with --status");
      const holdsLeases = given.has("dhcp"), idleSeconds = numberIn(given, "idle", 0, MOST_SECONDS) ?? 0;
      if (holdsLeases && idleSeconds > 0) {
        throw new UsageError("--idle and --dhcp exclude each other: leases are renewed; leave --idle out");
      }
      const workers = numberIn(given, "workers", 1, MOST_WORKERS);
      const rehearsals = numberIn(given, "rehearsals", 0, MOST_REHEARSALS);
      return services.serve({ workers, idleSeconds, rehearsals, holdsLeases });
    }
    const { isServing, text, facts } = services.status();
    if (given.has("json")) printLine(JSON.stringify(facts, null, 2));
    else print(text);
    return isServing ? 0 : 1;
  },
};

function numberIn(given: Given, option: string, least: number, most: number): number | undefined {
  const text = given.value(option);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`--${option} takes a number from ${least} to ${most}, not ${text}`);
}
