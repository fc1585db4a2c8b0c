/**
 * The trace: a line of JSON for every verb, every operation on a resource and every important decision.
 * PATCHBAY_TRACE=1 writes it to stderr, PATCHBAY_TRACE=<absolute path> appends it to that file. Where the caller names its
 * span (trace-context.ts), every command and every verb is a span beneath it, and each line has the ids of the one that it
 * belongs to. Without a trace nobody would see our spans, so programs that we run then get the caller's.
 *
 * Only its owner may read the file, so it is created with mode 0600. A file that is a symbolic link, belongs to another
 * user, is writable by others or has a second name is rejected. Otherwise somebody could use the trace to write to a
 * file of root's. A trace that cannot be written never fails a verb.
 */
import { errorText } from "../cni/error.ts";
import { variable } from "../ffi/environment.ts";
import { forgetAfterCall } from "../process/calls.ts";
import { closeFile, O_APPEND, O_CREAT, O_WRONLY, writeAll } from "../ffi/files.ts";
import { utf8 } from "../ffi/libc.ts";
import { openStateFile } from "../process/state-file.ts";
import { warn } from "../process/warn.ts";
import type { AnyKind } from "./resource.ts";
import type { Owner } from "./owner.ts";
import { spanWithin, traceparentOf, type TraceSpan } from "./trace-context.ts";

/** The verb that a line of the trace belongs to. */
export interface Scene extends Owner {
  verb: string;
  plugin: string;
}

type Facts = Readonly<Record<string, unknown>>;

const OFF = -1;
let sink: number | undefined;
let scene: Scene | undefined;
let span: TraceSpan | undefined;

forgetAfterCall(() => {
  if (sink !== undefined && sink > 2) closeFile(sink);
  sink = undefined;
});

export function isTracing(): boolean {
  sink ??= openSink();
  return sink !== OFF;
}

/** Writes a decision and its reasons: `note("masquerade backend", { backend, why })`. */
export function note(what: string, facts: Facts): void {
  if (isTracing()) writeLine({ ...scene, note: what, ...facts });
}

/** Runs a verb: its trace lines carry `here`, and a last line shows how it ended. */
export function inScene<T>(here: Scene, work: () => T): T {
  const outer = scene;
  scene = here;
  try {
    return inSpan({ operation: "verb" }, work);
  } finally {
    scene = outer;
  }
}

/** Runs a command of the runtime. The verbs that it calls are spans beneath its own. */
export function inCommand<T>(command: string, work: () => T): T {
  return isTracing() ? inSpan({ operation: "command", command }, work) : work();
}

function inSpan<T>(facts: Facts, work: () => T): T {
  const outer = span;
  span = isTracing() ? spanWithin(outer) : undefined;
  try {
    return timed(facts, work);
  } finally {
    span = outer;
  }
}

/** For the environment of a plugin or driver that is another program: the open span is its parent. */
export function spanForChild(): Readonly<Record<string, string>> {
  return span === undefined ? {} : { TRACEPARENT: traceparentOf(span) };
}

/** Runs one operation on a resource. */
export function traced<T>(
  operation: "apply" | "verify" | "remove" | "undo" | "repair",
  kind: AnyKind,
  spec: unknown,
  work: () => T,
): T {
  if (!isTracing()) return work();
  return timed({ operation, kind: kind.kind, resource: kind.describe(spec) }, work);
}

/** Runs an operation that is not on a resource, such as a foreign plugin. */
export function timed<T>(facts: Facts, work: () => T): T {
  if (!isTracing()) return work();
  const started = Bun.nanoseconds();
  const end = (outcome: Facts) => {
    const ms = Math.round((Bun.nanoseconds() - started) / 1e3) / 1e3;
    writeLine({ ...scene, ...facts, ms, ...outcome });
  };
  try {
    const value = work();
    end(Array.isArray(value) && value.length > 0 ? { differences: value } : {});
    return value;
  } catch (error) {
    end({ error: errorText(error) });
    throw error;
  }
}

function writeLine(line: Facts): void {
  try {
    writeAll(sink!, utf8(JSON.stringify({ time: new Date().toISOString(), ...span, ...line }) + "\n"));
  } catch {
    sink = OFF;
  }
}

function openSink(): number {
  const wanted = variable("PATCHBAY_TRACE");
  if (!wanted || wanted === "0") return OFF;
  if (wanted === "1") return 2;
  try {
    if (!wanted.startsWith("/")) throw new Error(`it must be 1 or the absolute path of a file, not "${wanted}"`);
    return openStateFile(wanted, O_WRONLY | O_APPEND | O_CREAT).fd;
  } catch (error) {
    warn(`nothing is traced to PATCHBAY_TRACE: ${errorText(error)}`);
    return OFF;
  }
}
