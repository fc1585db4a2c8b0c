/**
 * The sysctls that a host allows: lines of /etc/cni/tuning/allowlist.conf, each a regular expression that may match
 * anywhere in a configured key. An empty file allows none.
 *
 * The lines have Go's syntax (RE2). Syntax that JavaScript lacks or interprets differently is rejected, because a
 * misread list could allow anything.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";

/** Throws a CniError of code 7 for the first key that no line of `text` matches. */
export function checkAllowed(keys: readonly string[], text: string): void {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const patterns = lines.map(compile);
  for (const key of keys) {
    if (patterns.some((pattern) => pattern.test(key))) continue;
    throw new CniError(
      INVALID_CONFIG,
      `Sysctl ${key} is not allowed. Only the following sysctls are allowed: [${lines.join(" ")}]`,
    );
  }
}

/** HostView-around and back references, which RE2 lacks; [:classes:], which JavaScript would read as single letters. */
const INCOMPATIBLE = /\(\?<?[=!]|\\[1-9k]|\[:\^?\w+:\]/;

function compile(line: string): RegExp {
  const reason = INCOMPATIBLE.exec(line);
  try {
    if (reason !== null) throw new SyntaxError(`${reason[0]} is not supported`);
    // Go allows any punctuation to be escaped, JavaScript only syntax characters.
    const escaped = line.replace(/\\([^\w^$\\.*+?()[\]{}|/])/g, (_, character: string) => {
      return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
    });
    return new RegExp(escaped.replaceAll("\\_", "_"), "u");
  } catch (error) {
    throw new CniError(
      INVALID_CONFIG,
      `the sysctl allowlist has a line that is no regular expression: ${line}`,
      (error as Error).message,
      { cause: error },
    );
  }
}
