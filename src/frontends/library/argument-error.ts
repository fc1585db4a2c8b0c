/** The error for invalid arguments. */
import { CniError, INVALID_ENVIRONMENT } from "../../cni/error.ts";

/** The caller passed an invalid argument. Nothing was done. */
export class ArgumentError extends CniError {
  constructor(
    /** As in `attachment.args.K8S_POD_NAME`. */
    readonly key: string,
    readonly value: unknown,
    expected: string,
  ) {
    super(INVALID_ENVIRONMENT, `${key}: ${shown(value)} ${expected}`);
    this.name = "ArgumentError";
  }
}

function shown(value: unknown): string {
  if (value === undefined) return "undefined";
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
