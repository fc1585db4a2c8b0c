/** One call of netavark, with its arguments read. */
import type { Surroundings } from "./surroundings.ts";

export interface Call {
  readonly surroundings: Surroundings;
  /** The word after the subcommand; empty when it takes none. */
  readonly operand: string;
  /** The values of the subcommand's required option. */
  readonly values: readonly string[];
  /** The value of an optional option. */
  optional(name: string): string | undefined;
  readonly hasFile: boolean;
  /** stdin, or the file of `--file`. */
  readInput(): Uint8Array;
}
