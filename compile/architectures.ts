/**
 * What the program is built for. Whatever goes by the processor or the C library is in a row of architectures.json, which Node.js
 * reads, too; only what the tests' virtual machine needs of it is in test/vm/processors.ts.
 */
import rows from "./architectures.json";

export type Architecture = keyof typeof rows;

interface Row {
  /** As Node.js calls it. */
  processor: string;
  compiler: string;
  /** npm's package with Bun's executable. */
  bun: string;
  /** As Bun calls it. */
  target: string;
  /** The folder of the program. */
  out: string;
  /** For processors that have packages and a part of the image. */
  distributions?: Distributions;
}

/** What it is called there, and where Debian has its C library. */
export interface Distributions {
  debian: string;
  rpm: string;
  /** Go's names, which images use. */
  image: { architecture: string; variant?: string };
  libraries: string;
  loader: string;
}

export const architectures: Readonly<Record<Architecture, Row>> = rows;
export const architectureNames = Object.keys(rows) as readonly Architecture[];
