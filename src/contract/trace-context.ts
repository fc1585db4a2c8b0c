/**
 * W3C Trace Context in the environment, where libcni has it since 1.3.1 (OpenTelemetry, "Environment Variables as
 * Context Propagation Carriers"). A caller names its span in TRACEPARENT; ours are beneath it, in the same trace.
 */
import { variable } from "../ffi/environment.ts";
import { randomBytes } from "../ffi/random.ts";

/** With OpenTelemetry's names. */
export interface TraceSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
}

interface Context {
  traceId: string;
  spanId: string;
  flags: number;
}

/** In version 00: sampled, and a trace id that is random. Others must be zero in what we pass on. */
const KNOWN_FLAGS = 0x03;
const LENGTH = 55;

/** A new span: within `outer` or, without one, within the caller's. Undefined when the caller has none. */
export function spanWithin(outer: TraceSpan | undefined): TraceSpan | undefined {
  const { traceId, spanId } = outer ?? callersContext() ?? {};
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId: newSpanId(), parentSpanId: spanId };
}

/** The caller's TRACEPARENT with the span as parent, in version 00 whatever the caller's is. */
export function traceparentOf({ traceId, spanId }: TraceSpan): string {
  const flags = (callersContext()?.flags ?? 0) & KNOWN_FLAGS;
  return `00-${traceId}-${spanId}-${hex(flags)}`;
}

/** What is not valid counts for nothing, as if it were not set. Later versions may have more after the flags. */
function callersContext(): Context | undefined {
  const text = variable("TRACEPARENT") ?? "";
  if (text.length > LENGTH && (text.startsWith("00") || text[LENGTH] !== "-")) return undefined;
  // Made here, because every call loads this module: docs/decisions/0005-first-use.md.
  const form = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
  const [, traceId, spanId, flags] = form.exec(text.slice(0, LENGTH)) ?? [];
  return traceId === undefined ? undefined : { traceId, spanId: spanId!, flags: parseInt(flags!, 16) };
}

function newSpanId(): string {
  const bytes = randomBytes(8);
  return bytes.every((byte) => byte === 0) ? newSpanId() : Array.from(bytes, hex).join("");
}

const hex = (byte: number) => byte.toString(16).padStart(2, "0");
