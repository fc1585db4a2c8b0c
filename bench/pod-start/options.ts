/** The options of `npm run pod-start`. A wrong one names itself, its value and what there is. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Arguments, Refused } from "../../compile/arguments.mjs";
import { type EngineName, engines, type Theirs } from "./engines.ts";
import type { Limits } from "./limits.ts";

export interface Wish {
  engines: EngineName[];
  count: number;
  program: string;
  theirs: Record<"plugins" | "netavark", Theirs | undefined>;
  limits: Limits;
  out: string | undefined;
  resident: boolean;
}

const NONE = "none";

const DEFAULTS = { program: "dist/patchbay", cni: "/usr/lib/cni", netavark: "/usr/lib/podman/netavark" };

export const podStart = {
  name: "pod-start",
  about: `Measures how long a container engine takes to start a container, and the network's share of it, as root in
namespaces of its own. Exits with 1 when a limit was passed, and with 2 when it could not measure.`,
  options: {
    engine: { type: "string", value: "A,B", about: `${Object.keys(engines).join(", ")}; by default all` },
    count: { type: "string", value: "N", default: "20", about: "containers of each kind; by default 20" },
    program: { type: "string", value: "FILE", about: `another build than ${DEFAULTS.program}` },
    resident: {
      type: "boolean",
      default: false,
      about: "our plugins, and netavark, through `patchbay serve`",
    },
    "theirs-cni": { type: "string", value: "DIR", about: "plugins to compare with; by default Debian's; or none" },
    "theirs-netavark": {
      type: "string",
      value: "FILE",
      about: "netavark to compare with; by default Debian's; or none",
    },
    limit: {
      type: "string",
      value: "R",
      about: "fails when a start with ours takes more than R times one with theirs",
    },
    "limit-ms": { type: "string", value: "N", about: "fails when a start with ours takes more than N ms" },
    out: { type: "string", value: "DIR", about: "writes pod-start.txt, pod-start.json and pod-start.svg there" },
    inside: { type: "boolean", default: false },
  },
} as const;

/** Only what is named has to be there: set-up brings the rest. */
export function wishOf({ values }: Arguments<typeof podStart.options>, root: string): Wish {
  const names = [...new Set(values.engine?.split(",") ?? Object.keys(engines))];
  for (const name of names) {
    if (!Object.hasOwn(engines, name)) {
      throw new Refused(`--engine ${name}: no such engine; there are ${Object.keys(engines).join(", ")}`);
    }
  }
  // What no engine needs may be missing.
  const replaced = new Set((names as EngineName[]).map((name) => engines[name].replaces));
  const wish: Wish = {
    engines: names as EngineName[],
    count: numberIn("count", values.count)!,
    program: values.program === undefined ? join(root, DEFAULTS.program) : there("program", values.program),
    theirs: {
      plugins: replaced.has("plugins") ? theirsIn("theirs-cni", values["theirs-cni"], DEFAULTS.cni) : undefined,
      netavark: replaced.has("netavark")
        ? theirsIn("theirs-netavark", values["theirs-netavark"], DEFAULTS.netavark)
        : undefined,
    },
    limits: { ratio: numberIn("limit", values.limit), ms: numberIn("limit-ms", values["limit-ms"]) },
    out: values.out === undefined ? undefined : resolve(values.out),
    resident: values.resident,
  };
  if (!Number.isInteger(wish.count) || wish.count < 1) {
    throw new Refused(`--count ${values.count}: not a number of containers`);
  }
  const alone = wish.engines.find((name) => wish.theirs[engines[name].replaces] === undefined);
  if (wish.limits.ratio !== undefined && alone !== undefined) {
    throw new Refused(`--limit ${values.limit}: ${alone} has nothing to be compared with; take --limit-ms`);
  }
  return wish;
}

function numberIn(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Refused(`--${option} ${text}: not a number`);
  return Number(text);
}

function there(option: string, path: string): string {
  const found = resolve(path);
  if (!existsSync(found)) throw new Refused(`--${option} ${found}: it is not there`);
  return found;
}

function theirsIn(option: "theirs-cni" | "theirs-netavark", path: string | undefined, byDefault: string) {
  if (path === NONE) return undefined;
  const found: Theirs = { path: resolve(path ?? byDefault) };
  if (path !== undefined) there(option, neededOf(found, option));
  return found;
}

function neededOf({ path }: Theirs, option: "theirs-cni" | "theirs-netavark"): string {
  return option === "theirs-cni" ? join(path, "bridge") : path;
}

/** Throws when something is missing that is to be measured. */
export function requirePrograms({ program, theirs: { plugins, netavark } }: Wish): void {
  there("program", program);
  if (plugins !== undefined) there("theirs-cni", neededOf(plugins, "theirs-cni"));
  if (netavark !== undefined) there("theirs-netavark", neededOf(netavark, "theirs-netavark"));
}
