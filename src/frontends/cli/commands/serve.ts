/** `patchbay serve`. */
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { print, printJson } from "../../../process/output.ts";
import { becomeProgramOfHost } from "../../../install/program-of-host.ts";

/** Refuses typing errors, and nothing else. */
const MOST_WORKERS = 64, MOST_SECONDS = 365 * 86400, MOST_REHEARSALS = 10_000;

export const serveCommand: Command = {
  runsByItself: true,
  stays: true,
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
    "by-call": {
      help:
        "as calls start a resident (install --resident=calls): it ends when its program's file or .patchbay-resident changes",
    },
    dhcp: { help: "also hold the leases of the plugin dhcp, as `patchbay dhcp` does" },
    host: {
      value: "DIR",
      isNeverEmpty: true,
      help: "from a privileged container: as the program in DIR of the host, in the host's namespaces",
    },
    status: { help: "say what the resident is doing, instead of becoming one" },
    json: { help: "with --status: print JSON" },
  },
  notes: "Calls that it cannot serve, and all calls when it is gone, run by themselves.\n",
  exitStatus: "with --status, 0 when calls of this program are served, 1 when they run by themselves.",
  examples: [{ args: "--status", what: "whether calls are served, and what the resident is doing" }],
  run(given) {
    if (!given.has("status")) {
      if (given.has("json")) throw new UsageError("--json goes with --status");
      const holdsLeases = given.has("dhcp"), idleSeconds = numberIn(given, "idle", 0, MOST_SECONDS) ?? 0;
      if (holdsLeases && idleSeconds > 0) {
        throw new UsageError("--idle and --dhcp exclude each other: leases are renewed; leave --idle out");
      }
      const workers = numberIn(given, "workers", 1, MOST_WORKERS);
      const rehearsals = numberIn(given, "rehearsals", 0, MOST_REHEARSALS);
      const host = given.value("host"), isByCall = given.has("by-call");
      if (isByCall && holdsLeases) {
        throw new UsageError("--by-call and --dhcp exclude each other: leases are renewed");
      }
      if (isByCall && host !== undefined) throw new UsageError("--by-call and --host exclude each other");
      if (host !== undefined) becomeProgramOfHost(host, ["serve", ...withoutHost(given)]);
      return (require("../../resident/serve.ts") as typeof import("../../resident/serve.ts")).serve({
        workers,
        idleSeconds,
        rehearsals,
        holdsLeases,
        isByCall,
      });
    }
    if (given.has("host")) throw new UsageError("--host and --status exclude each other: run --status on the host");
    const { isServing, text, facts } =
      (require("../../resident/status.ts") as typeof import("../../resident/status.ts"))
        .reportStatus();
    if (given.has("json")) printJson(facts);
    else print(text);
    return isServing ? 0 : 1;
  },
};

/** The other options, for the program that takes this one's place. */
function withoutHost(given: GivenArguments): string[] {
  const numbers = ["workers", "idle", "rehearsals"].filter((name) => given.has(name));
  return [...numbers.map((name) => `--${name}=${given.value(name)}`), ...given.has("dhcp") ? ["--dhcp"] : []];
}

function numberIn(given: GivenArguments, option: string, least: number, most: number): number | undefined {
  const text = given.value(option);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`--${option} takes a number from ${least} to ${most}, not ${text}`);
}
