/** What the checks of a configuration report. */
import type { Span } from "../conf/positioned-json.ts";

/**
 * `error`: the configuration is rejected. `warning`: it does not do what it seems to do. `note`: something is ignored,
 * perhaps on purpose.
 */
export type Severity = "error" | "warning" | "note";

export interface Remark extends Span {
  readonly severity: Severity;
  /** A path such as `ipam.ranges[0][0].subnet`; "" for the document itself. */
  readonly key: string;
  readonly message: string;
  /** The key or value that was probably meant. */
  readonly meant?: string;
}

export type Reporter = (remark: Remark) => void;

export function remark(at: Span, severity: Severity, key: string, message: string, meant?: string): Remark {
  const { start, end } = at;
  return { start, end, severity, key, message, ...meant !== undefined && { meant } };
}

/** The path of a key inside of what `path` leads to. */
export function keyPath(path: string, key: string): string {
  return path === "" || key === "" ? path + key : `${path}.${key}`;
}
