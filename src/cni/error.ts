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

/**
 * What a person may do about an error. Only the command line shows it, in a line of its own: texts of errors stay to the
 * letter, because engines and users of the reference plugins look for them. `network` is what stands where NETWORK belongs.
 */
export type NextStep = string | ((network: string) => string);

interface CniErrorOptions extends ErrorOptions {
  nextStep?: NextStep | undefined;
}

export class CniError extends Error {
  readonly nextStep: NextStep | undefined;

  constructor(readonly code: number, message: string, readonly details = "", options?: CniErrorOptions) {
    super(message, options);
    this.name = "CniError";
    this.nextStep = options?.nextStep;
  }
}

/** Errors, and lines that are told beside them: each text once. */
export function distinct(errors: readonly unknown[]): unknown[] {
  return [...new Map(errors.map((error) => [errorText(error), error])).values()];
}

/** The error's, or that of the error which it wraps. */
export function nextStepOf(error: unknown): NextStep | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof CniError && at.nextStep !== undefined) return at.nextStep;
  }
  return undefined;
}

/** The error as part of another message: `msg` or `msg; details`. */
export function errorText(error: unknown): string {
  if (error instanceof CniError && error.details !== "") return `${error.message}; ${error.details}`;
  return error instanceof Error ? error.message : String(error);
}

/** One line with what `work` fails with; none when it succeeds. */
export function failureLines(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    return [errorText(error)];
  }
}

/** What `work` returns; undefined where it fails. */
export function undefinedOnError<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
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
