/** Rules for the code of src: no banned calls, no untyped loading, no `any`. */
import type { Source } from "./sources.ts";

/**
 * The library is called by a program with an event loop of its own. Stores of a cluster are asked by HTTP, with TLS, and
 * only by processes that serve no verb.
 */
const WAITING = /^src\/(frontends\/library|cluster-stores|services\/node)\//;

/** Banned calls. Sources are searched without comments and types. */
const banned: { call: RegExp; why: string; except?: RegExp }[] = [
  { call: /\bconsole\.(log|info|debug|table)\b/, why: "stdout belongs to the one result" },
  { call: /\bprocess\.(stdout|stdin|stderr)\b/, why: "loads node's streams: use src/ffi/files.ts" },
  { call: /\bprocess\.exit\(/, why: "runs the runtime's exit work: use exitNow" },
  { call: /\bBun\.(write|file|spawn|spawnSync|\$)\b/, why: "use src/ffi", except: /^src\/ffi\/watch\.ts$/ },
  {
    call: /\b(fetch|setTimeout|setInterval|queueMicrotask)\(/,
    why: "everything is synchronous",
    except: WAITING,
  },
  { call: /\bawait[\s(]/, why: "everything is synchronous", except: WAITING },
  { call: /\beval\(|new Function\(/, why: "no code from text" },
  { call: /\bdlopen\(/, why: "bind through src/ffi/libc.ts", except: /^src\/ffi\/(libc|native)\.ts$/ },
];

export function calls(sources: readonly Source[]): string[] {
  return sources.filter(({ path }) => !path.endsWith(".schema.ts")).flatMap(({ path, code }) =>
    banned.filter(({ call, except }) => !except?.test(path) && call.test(code))
      .map(({ call, why }) => `${path}: calls ${code.match(call)![0]}: ${why}`)
  );
}

/** Lazy loading has one form, which keeps types: `require("./x.ts") as typeof import("./x.ts")`. */
export function lazyLoading(sources: readonly Source[]): string[] {
  const findings: string[] = [];
  for (const { path, text } of sources) {
    for (const [call, target] of text.matchAll(/\brequire\("([^"]+)"\)(?!\s+as typeof import\(\s*"\1",?\s*\))/g)) {
      findings.push(`${path}: ${call} must be followed by: as typeof import("${target}")`);
    }
  }
  return findings;
}

/** `any` disables type checks for everything that uses it. Only one file needs it and says why. */
export function anyTypes(sources: readonly Source[]): string[] {
  return sources.filter(({ path, text }) => path !== "src/contract/resource.ts" && text.includes("no-explicit-any"))
    .map(({ path }) => `${path}: must do without "any"`);
}
