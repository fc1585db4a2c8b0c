/** Prints log lines to stderr as netavark's logger does, by the rules in RUST_LOG: podman sets `netavark=<level>`. */
import { variable } from "../../../ffi/environment.ts";
import { printToStderr } from "../../../ffi/terminal.ts";

const levels = ["off", "error", "warn", "info", "debug", "trace"] as const;
type Level = Exclude<(typeof levels)[number], "off">;

/** The rule is for modules whose name begins with `module`. */
interface Rule {
  module: string;
  level: number;
}

/** `module` is a name of netavark's. */
export function log(level: Level, module: string, text: string): void {
  if (levels.indexOf(level) > mostOf(module, rules())) return;
  printToStderr(`[${level.toUpperCase().padEnd(5)} ${module}] ${text}`);
}

/** The most verbose level of all rules; aardvark-dns is started with it. */
export function loudestLevel(): string {
  return levels[rules().reduce((loudest, { level }) => Math.max(loudest, level), 0)]!.toUpperCase();
}

/** The rule with the longest prefix counts; of equal ones, the last. */
function mostOf(module: string, rules: readonly Rule[]): number {
  let best: Rule | undefined;
  for (const rule of rules) {
    if (module.startsWith(rule.module) && rule.module.length >= (best?.module.length ?? 0)) best = rule;
  }
  return best?.level ?? 0;
}

/** `module=level`, `module` or `level`, separated by commas. Ignores the text filter after a slash. */
function rules(): readonly Rule[] {
  const found: Rule[] = [];
  for (const part of (variable("RUST_LOG") ?? "").split("/")[0]!.split(",")) {
    const [first = "", second] = part.trim().split("=", 2);
    if (first === "" && second === undefined) continue;
    const alone = levelOf(first);
    if (second === undefined) {
      found.push(alone < 0 ? { module: first, level: levels.length - 1 } : { module: "", level: alone });
    } else {
      const level = second === "" ? levels.length - 1 : levelOf(second);
      if (level >= 0) found.push({ module: first, level });
    }
  }
  return found.length > 0 ? found : [{ module: "", level: levels.indexOf("error") }];
}

function levelOf(word: string): number {
  return (levels as readonly string[]).indexOf(word.toLowerCase());
}
