/**
 * The call that this process runs: its own or, in a resident, one that another process handed over. What modules keep
 * during a call they must not keep for the next one.
 */
import { readTextFile } from "../ffi/files.ts";

const forgetting: (() => void)[] = [];

export function forgetAfterCall(forget: () => void): void {
  forgetting.push(forget);
}

/** Modules forget what they held for the call. For processes that run more than one. */
export function endCall(): void {
  caller = leftBecause = undefined;
  wasGone = false;
  for (const forget of forgetting) forget();
}

/** The process that handed its call over. */
interface Caller {
  /** See `processId`; undefined when it cannot be read any more. */
  id(): string | undefined;
  isGone(): boolean;
  /** Why it runs these plugins itself: one of them may wait, or is another program. Undefined when none is. */
  reasonToKeep?(plugins: readonly PluginToCall[], pluginPath: string): string | undefined;
}

export interface PluginToCall {
  readonly type: string;
  readonly config: Readonly<Record<string, unknown>>;
}

let caller: Caller | undefined;
let leftBecause: string | undefined;
let wasGone = false;

export function takeCall(from: Caller): void {
  caller = from;
}

/**
 * The caller's process is to run the call from its beginning. Where the error is taken for a failure, the answer is not
 * sent all the same, no ADD begins any more, and no record is removed. Verbs that stop half-way can be repeated, as after a
 * kill; what they would do next has to wait for what was left (`passOnIfLeft`).
 */
export function leaveToCaller(reason: string): never {
  leftBecause ??= reason;
  throw new Error(`left to the caller: ${reason}`);
}

/** Why the call is left to its caller, whatever it returned. */
export function reasonLeft(): string | undefined {
  return leftBecause;
}

/** Before the first effect of what calls these plugins: the call is left where one of them may wait. */
export function leaveWhatMayWait(plugins: readonly PluginToCall[], pluginPath: string): void {
  const reason = caller?.reasonToKeep?.(plugins, pluginPath);
  if (reason !== undefined) leaveToCaller(reason);
}

/** Where failures are collected: what comes next in order is the caller's, too. */
export function passOnIfLeft(error: unknown): void {
  if (leftBecause !== undefined) throw error;
}

/** Before ADD makes something, which nobody would take back, and before a record goes, which the caller needs. */
export function refuseIfLeft(): void {
  if (leftBecause !== undefined) leaveToCaller(leftBecause);
}

export function isHandedOver(): boolean {
  return caller !== undefined;
}

/** Nobody waits for the answer any more. */
export function isCallerGone(): boolean {
  wasGone ||= caller !== undefined && caller.isGone();
  return wasGone;
}

/** For an ADD that has its result: who does not get it believes that nothing is attached. */
export function requireCaller(): void {
  refuseIfLeft();
  if (isCallerGone()) throw new Error("the caller is gone");
}

/** The process that handed its call over, as `processId` has it; undefined when the call is this process's own. */
export function callerId(): string | undefined {
  return caller?.id();
}

/** This process's own id: `callerId` in a resident to which it hands a call over. */
export function ownProcessId(): string {
  return processId(readTextFile("/proc/self/stat") ?? "");
}

/**
 * Differs from the one of every other process until the next boot, also from a later one with the same number. `stat` is
 * the process's file of this name.
 */
export function processId(stat: string): string {
  // The name before may contain anything. The 20th field after it is the time of the start (proc(5)).
  const startedAt = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return `${stat.slice(0, stat.indexOf(" "))} ${startedAt}`;
}
