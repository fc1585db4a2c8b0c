/** The options of `npm run pod-start`. A wrong one names itself, its value and what there is. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
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

export function parse(args: string[], root: string): Wish & { inside: boolean } {
  const { values } = parseArgs({
    args,
    options: {
      engine: { type: "string" },
      count: { type: "string", default: "20" },
      program: { type: "string", default: join(root, "dist/patchbay") },
      "theirs-cni": { type: "string", default: "/usr/lib/cni" },
      "theirs-netavark": { type: "string", default: "/usr/lib/podman/netavark" },
      limit: { type: "string" },
      "limit-ms": { type: "string" },
      out: { type: "string" },
      resident: { type: "boolean", default: false },
      inside: { type: "boolean", default: false },
    },
  });
  const names = [...new Set(values.engine?.split(",") ?? Object.keys(engines))];
  for (const name of names) {
    if (!Object.hasOwn(engines, name)) {
      throw new Error(`--engine ${name}: no such engine; there are ${Object.keys(engines).join(", ")}`);
    }
  }
  // What no engine needs may be missing.
  const replaced = new Set((names as EngineName[]).map((name) => engines[name].replaces));
  const wish: Wish & { inside: boolean } = {
    engines: names as EngineName[],
    count: numberIn("count", values.count)!,
    program: there("program", values.program),
    theirs: {
      plugins: replaced.has("plugins") ? theirsIn("theirs-cni", values["theirs-cni"], "bridge") : undefined,
      netavark: replaced.has("netavark") ? theirsIn("theirs-netavark", values["theirs-netavark"]) : undefined,
    },
    limits: { ratio: numberIn("limit", values.limit), ms: numberIn("limit-ms", values["limit-ms"]) },
    out: values.out === undefined ? undefined : resolve(values.out),
    resident: values.resident,
    inside: values.inside,
  };
  if (!Number.isInteger(wish.count) || wish.count < 1) {
    throw new Error(`--count ${values.count}: not a number of containers`);
  }
  const alone = wish.engines.find((name) => wish.theirs[engines[name].replaces] === undefined);
  if (wish.limits.ratio !== undefined && alone !== undefined) {
    throw new Error(`--limit ${values.limit}: ${alone} has nothing to be compared with; take --limit-ms`);
  }
  return wish;
}

function numberIn(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`--${option} ${text}: not a number`);
  return Number(text);
}

function there(option: string, path: string): string {
  const found = resolve(path);
  if (!existsSync(found)) throw new Error(`--${option} ${found}: it is not there`);
  return found;
}

function theirsIn(option: string, path: string, file = ""): Theirs | undefined {
  if (path === NONE) return undefined;
  there(option, join(path, file));
  return { path: resolve(path) };
}
