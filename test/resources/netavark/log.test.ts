/** Log lines by the rules in RUST_LOG, as netavark's logger takes them. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import type { log } from "../../../src/resources/netavark/shared/log.ts";

type Call = Parameters<typeof log>;

const calls: Call[] = [
  ["error", "netavark::dns", "an error"],
  ["warn", "netavark::dns", "a warning"],
  ["info", "netavark::firewall", "a firewall"],
  ["debug", "netavark::firewall", "a detail"],
];
const ERROR = "[ERROR netavark::dns] an error", WARNING = "[WARN  netavark::dns] a warning";
const INFO = "[INFO  netavark::firewall] a firewall", DETAIL = "[DEBUG netavark::firewall] a detail";

/** In a process of its own, because stderr is. The last line is the loudest level. */
function logged(rules: string | undefined): string[] {
  const module = resolve(import.meta.dir, "../../../src/resources/netavark/shared/log.ts");
  const script = `import { log, loudestLevel } from "${module}";
    for (const call of ${JSON.stringify(calls)}) log(...call);
    console.error(loudestLevel());`;
  const env = { PATH: process.env["PATH"]!, ...rules !== undefined && { RUST_LOG: rules } };
  return Bun.spawnSync([process.execPath, "-e", script], { env }).stderr.toString().trim().split("\n");
}

const rules: [rules: string | undefined, lines: string[]][] = [
  [undefined, [ERROR, "ERROR"]],
  ["", [ERROR, "ERROR"]],
  ["netavark=info", [ERROR, WARNING, INFO, "INFO"]],
  ["netavark=WARN", [ERROR, WARNING, "WARN"]],
  ["info", [ERROR, WARNING, INFO, "INFO"]],
  ["off", ["OFF"]],
  ["error,netavark::firewall=debug", [ERROR, INFO, DETAIL, "DEBUG"]],
  ["netavark::firewall=debug,error", [ERROR, INFO, DETAIL, "DEBUG"]],
  ["netavark::firewall=off,trace", [ERROR, WARNING, "TRACE"]],
  ["netavark::firewall", [INFO, DETAIL, "TRACE"]],
  ["netavark::firewall=", [INFO, DETAIL, "TRACE"]],
  ["other=trace", ["TRACE"]],
  ["netavark=loud", [ERROR, "ERROR"]],
  [" warn , ,/filter", [ERROR, WARNING, "WARN"]],
];

test("rules choose lines", () => {
  for (const [rule, lines] of rules) expect({ rule, lines: logged(rule) }).toEqual({ rule, lines });
});
