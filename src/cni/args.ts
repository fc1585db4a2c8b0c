/**
 * CNI_ARGS: `KEY=value;KEY=value`, the legacy channel for per-attachment data (CNI conventions, "CNI_ARGS").
 *
 * Keys are case-sensitive. An unknown key is an error unless `IgnoreUnknown=1` is among the pairs; engines that pass keys
 * of their own to every plugin always add that.
 */
import { CniError, INVALID_ENVIRONMENT } from "./error.ts";
import { goQuote } from "./quote.ts";

/** The pairs whose key is among `knownKeys`; the last of repeated keys wins. Throws a CniError of code 4. */
export function parseCniArgs<Key extends string>(
  text: string,
  knownKeys: readonly Key[],
): Partial<Record<Key, string>> {
  const found: Partial<Record<Key, string>> = {};
  if (text === "") return found;
  const unknown: string[] = [];
  let ignoreUnknown = false;
  for (const pair of text.split(";")) {
    const equals = pair.indexOf("=");
    if (equals < 0 || equals !== pair.lastIndexOf("=")) throw invalid(`invalid pair ${goQuote(pair)}`);
    const key = pair.slice(0, equals), value = pair.slice(equals + 1);
    if (key === "IgnoreUnknown") ignoreUnknown = parseBoolean(value, pair);
    else if (knownKeys.includes(key as Key)) found[key as Key] = value;
    else unknown.push(pair);
  }
  if (unknown.length > 0 && !ignoreUnknown) throw invalid(`unknown args [${unknown.map(goQuote).join(" ")}]`);
  return found;
}

/** For plugins: the error for an invalid value of a known key. */
export function invalidArg(key: string, value: string, reason: string): CniError {
  return invalid(`error parsing value of pair ${goQuote(`${key}=${value}`)}: ${reason}`);
}

function parseBoolean(value: string, pair: string): boolean {
  const folded = value.toLowerCase();
  if (folded === "1" || folded === "true") return true;
  if (folded === "0" || folded === "false") return false;
  const reason = `boolean unmarshal error: invalid input ${value}`;
  throw invalid(`error parsing value of pair ${goQuote(pair)}: ${reason}`);
}

function invalid(problem: string): CniError {
  return new CniError(INVALID_ENVIRONMENT, `ARGS: ${problem}`, "CNI_ARGS");
}
