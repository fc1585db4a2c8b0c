/** The part of zod's definitions that the generator reads. */
import type { z } from "zod";

export interface Definition {
  type: string;
  innerType?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
  defaultValue?: unknown;
  in?: z.ZodType;
  entries?: Record<string, string>;
  checks?: { _zod: { def: Check } }[];
  error?: (issue: { input: unknown }) => string;
}

export interface Check {
  check: string;
  value?: number;
  error?: (issue: { input: unknown }) => string;
}

export const definition = (schema: z.ZodType) => schema._zod.def as unknown as Definition;
