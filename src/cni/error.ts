/** The error that is written to stdout (CNI spec 1.1.0, "Error"), and its codes. */

export const INCOMPATIBLE_VERSION = 1;
export const UNSUPPORTED_FIELD = 2;
export const UNKNOWN_CONTAINER = 3;
export const INVALID_ENVIRONMENT = 4;
export const IO_FAILURE = 5;
export const DECODING_FAILURE = 6;
export const INVALID_CONFIG = 7;
/** Missing in the spec's table: the reference library's code for a bad CNI_NETNS. */
export const INVALID_NETNS = 8;
export const TRY_AGAIN_LATER = 11;
export const PLUGIN_NOT_AVAILABLE = 50;
export const LIMITED_CONNECTIVITY = 51;
/** Missing in the spec's table: the reference library's code for errors without a code. */
export const INTERNAL = 999;

export class CniError extends Error {
  constructor(readonly code: number, message: string, readonly details = "", options?: ErrorOptions) {
    super(message, options);
    this.name = "CniError";
  }
}

/** The error as part of another message: `msg` or `msg; details`. */
export function errorText(error: unknown): string {
  if (error instanceof CniError && error.details !== "") return `${error.message}; ${error.details}`;
  return error instanceof Error ? error.message : String(error);
}

/** What a failing plugin writes to stdout. `cniVersion` is the configuration's, if known. */
export function formatError(error: CniError, cniVersion?: string): string {
  return JSON.stringify(
    {
      cniVersion: cniVersion || undefined,
      code: error.code,
      msg: error.message,
      details: error.details || undefined,
    },
    null,
    4,
  );
}
