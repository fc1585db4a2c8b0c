/**
 * The trace: where PATCHBAY_TRACE asks for it, a line of JSON for every verb, for every operation on a resource, and for
 * every decision worth telling. `1` sends it to stderr, the absolute path of a file adds it to that file.
 *
 * The file is for root's eyes: it is made with mode 0600, and one that is a link, belongs to somebody else, can be
 * written by others or has another name somewhere is refused, so that nobody turns the trace into a way to write to a
 * file of root's. A trace that cannot be written never fails a verb.
 */
import { errorText } from "../cni/error.ts";
import {
  closeFile,
  identify,
  isRegularFile,
  O_APPEND,
  O_CREAT,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_WRONLY,
  openFile,
  writeAll,
} from "../ffi/files.ts";
import { utf8 } from "../ffi/libc.ts";
import { warn } from "../ffi/warn.ts";
import type { AnyKind } from "./resource.ts";
import type { Owner } from "./owner.ts";

/** What the lines between have in common: the verb they belong to. */
export interface Scene extends Owner {
  verb: string;
  plugin: string;
}

type Facts = Readonly<Record<string, unknown>>;

const OFF = -1;
let sink: number | undefined;
let scene: Scene | undefined;

export function isTracing(): boolean {
  sink ??= openSink();
  return sink !== OFF;
}

/** Tells a decision and what it rests on: `note("masquerade backend", { backend, why })`. */
export function note(what: string, facts: Facts): void {
  if (isTracing()) tell({ ...scene, note: what, ...facts });
}

/** Runs a verb; the lines that are told meanwhile name it, and one tells how it ended. */
export function inScene<T>(here: Scene, work: () => T): T {
  const outer = scene;
  scene = here;
  try {
    return timed({ operation: "verb" }, work);
  } finally {
    scene = outer;
  }
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

/** Runs what is no resource's, such as a plugin of another make. */
export function timed<T>(facts: Facts, work: () => T): T {
  if (!isTracing()) return work();
  const started = Bun.nanoseconds();
  const end = (outcome: Facts) => {
    const ms = Math.round((Bun.nanoseconds() - started) / 1e3) / 1e3;
    tell({ ...scene, ...facts, ms, ...outcome });
  };
  try {
    const answer = work();
    end(Array.isArray(answer) && answer.length > 0 ? { differences: answer } : {});
    return answer;
  } catch (error) {
    end({ error: errorText(error) });
    throw error;
  }
}

function tell(line: Facts): void {
  try {
    writeAll(sink!, utf8(JSON.stringify({ time: new Date().toISOString(), ...line }) + "\n"));
  } catch {
    sink = OFF;
  }
}

function openSink(): number {
  const { PATCHBAY_TRACE: wanted } = process.env;
  if (!wanted || wanted === "0") return OFF;
  if (wanted === "1") return 2;
  try {
    if (!wanted.startsWith("/")) throw new Error(`it must be 1 or the absolute path of a file, not "${wanted}"`);
    return openTraceFile(wanted);
  } catch (error) {
    warn(`nothing is traced to PATCHBAY_TRACE: ${errorText(error)}`);
    return OFF;
  }
}

function openTraceFile(path: string): number {
  // Not waiting for the other end of a pipe somebody put there.
  const fd = openFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  const file = identify(fd), { mode, uid, links } = file;
  if (isRegularFile(file) && (mode & 0o022) === 0 && uid === process.geteuid!() && links === 1) return fd;
  closeFile(fd);
  throw new Error(`${path} must be a file of uid ${process.geteuid!()} that nobody else can write`);
}
