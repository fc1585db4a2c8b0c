/**
 * A worker of the resident: accepts one call after the other and runs it as a process of its own would, synchronously.
 * A worker ends between two calls: when its parent ends, and when it has grown or served many.
 */
import { expectLongLife } from "../../services/daemon/long-life.ts";
import { endCall, processId, reasonLeft, takeCall } from "../../process/calls.ts";
import { takeEnvironment } from "../../ffi/environment.ts";
import { closeFile, identify, isSocket } from "../../ffi/files.ts";
import { keepFromNowOn } from "../../process/kept-open.ts";
import { libc } from "../../ffi/libc.ts";
import { memoryKib } from "../../ffi/process-files.ts";
import { forgetEnded } from "../../ffi/spawn.ts";
import { SharedWait } from "../../ffi/poll.ts";
import { ownBuild } from "../../engine/build.ts";
import { Connection } from "./connection.ts";
import { DECLINED_BECAUSE, SERVED, Slot, TAKEN_BACK } from "./board.ts";
import { reasonToDecline, reasonToKeep } from "./declining.ts";
import { type Difference, differenceOf } from "./caller-difference.ts";
import { DECLINED, DONE_IN_FILES, doneMessage, plainMessage, readRequest, READY, type Request } from "./protocol.ts";
import { Rehearsal } from "./rehearsal.ts";
import { Streams } from "./streams.ts";

/** The descriptors that a worker begins with (workers.ts). */
const LISTENING = 3, LIFELINE = 4, BOARD = 5, QUEUE = 6;

/** After that a child is one that hangs, and is forgotten after the next call. */
const LONGEST_LOOK_MS = 5000;

/** A worker that has served many calls, or has grown, makes room for a new one. */
const CALLS_OF_A_LIFE = 10_000, CALLS_BETWEEN_LOOKS = 256, MOST_KIB = 160 * 1024;

/** Runs a call by the name and the arguments it was called with; environment and streams are in place. */
export type RunCall = (argv: readonly string[]) => number;

export function isStartedByResident(): boolean {
  try {
    return isSocket(identify(LISTENING));
  } catch {
    return false;
  }
}

/** `slot`: the worker's place on the board. */
export function work(slot: number, rehearsals: number, runCall: RunCall): number {
  const streams = new Streams(), build = ownBuild(), waiting = new SharedWait(LISTENING, LIFELINE);
  const queue = new Queue();
  board = new Slot(BOARD, slot);
  keepFromNowOn();
  expectLongLife();
  const rehearsal = new Rehearsal(rehearsals, streams, runCall);
  // A burst may have started the resident, and its first call takes longest.
  const runFirstCall: RunCall = (argv) => {
    if (waiting.ready() === LISTENING) queue.tell();
    return runCall(argv);
  };
  board.ready();
  for (let calls = 0; calls < CALLS_OF_A_LIFE;) {
    const waited = waiting.ready();
    if ((waited ?? readyMeanwhile(rehearsal, waiting) ?? readyLater(waiting)) === LIFELINE) break;
    const connection = Connection.accept(LISTENING);
    if (connection === undefined) continue;
    let isCall = false;
    board.setBusy();
    try {
      isCall = serve(connection, streams, build, calls === 0 ? runFirstCall : runCall);
    } finally {
      board.setIdle();
      connection.close();
    }
    if (isCall) queue.note(waited !== undefined);
    if (isCall && ++calls % CALLS_BETWEEN_LOOKS === 0 && hasGrown()) break;
  }
  return 0;
}

/** Rehearses until something is ready, and returns that. */
function readyMeanwhile(rehearsal: Rehearsal, waiting: SharedWait): number | undefined {
  let ready: number | undefined;
  while (ready === undefined && rehearsal.isUseful) {
    board.setBusy();
    rehearsal.round();
    board.setIdle();
    ready = waiting.ready();
  }
  return ready;
}

/** Children remove links for us (ffi/reaper.ts), and end a moment after their call. */
function readyLater(waiting: SharedWait): number {
  for (let pauseMs = 50; pauseMs < LONGEST_LOOK_MS && forgetEnded().areRunning; pauseMs *= 2) {
    const ready = waiting.within(pauseMs);
    if (ready !== undefined) return ready;
  }
  return waiting.next();
}

/** Tells the parent when calls have to wait. One alone may have come just when the one before it ended. */
class Queue {
  private length = 0;

  note(hasWaited: boolean): void {
    this.length = hasWaited ? this.length + 1 : 0;
    if (this.length % 2 === 0 && this.length > 0) this.tell();
  }

  tell(): void {
    libc.write(QUEUE, Uint8Array.of(1), 1);
  }
}

/** This worker's. */
let board: Slot;

/** Collects garbage, too: by itself the runtime lets some 15 MB add up in a worker's life. */
function hasGrown(): boolean {
  if (memoryKib("self").all > MOST_KIB) return true;
  Bun.gc(true);
  return false;
}

/** Returns whether somebody asked for something. */
function serve(connection: Connection, streams: Streams, build: Uint8Array, runCall: RunCall): boolean {
  const received = connection.receive();
  if (received === undefined) return false;
  const { message, descriptors } = received;
  try {
    const request = readRequest(message);
    if (request === undefined || descriptors.length > 1) return true;
    const isOurs = Buffer.compare(request.build, build) === 0;
    const reason = isOurs ? differenceOfCaller(connection) : "build";
    const obstacle = reason ?? prepare(request, streams, descriptors[0]);
    const isAnswered = obstacle === undefined ? connection.send(plainMessage(READY)) : decline(connection, obstacle);
    if (!isAnswered || obstacle !== undefined) return true;
    board.countCall();
    takeCall({ id: () => idOf(connection), isGone: () => isGone(connection), reasonToKeep });
    run(connection, streams, request, runCall);
    return true;
  } finally {
    for (const fd of descriptors) closeFile(fd);
    streams.reset(false);
    // The caller's directory may be unmounted later.
    if (process.cwd() !== "/") process.chdir("/");
    endCall();
    forgetEnded();
  }
}

/** A caller that cannot be looked at has ended. */
function differenceOfCaller(connection: Connection): Difference | undefined {
  try {
    const { peer } = connection, difference = differenceOf(peer.files);
    return peer.hasEnded ? "namespace" : difference;
  } catch {
    return "namespace";
  }
}

/** A caller that has ended meanwhile will not look for what was begun in its name. */
function idOf({ peer }: Connection): string | undefined {
  try {
    return processId(peer.files.text("stat"));
  } catch {
    return undefined;
  }
}

/** An engine that has killed its plugin does not know that anything is attached: ADD takes it back. */
function isGone(connection: Connection): boolean {
  if (!connection.isGone) return false;
  board.count(TAKEN_BACK);
  return true;
}

/** Does not count a caller that is gone: it runs the call itself already, or was killed, and that may be the reason. */
function decline(connection: Connection, reason: string): boolean {
  if (connection.isGone) return false;
  board.count(`${DECLINED_BECAUSE}${reason}`);
  return connection.send(plainMessage(DECLINED));
}

/** Puts the caller's stdin, environment and directory in place of ours. Returns why the call is declined, or undefined. */
function prepare(request: Request, streams: Streams, stdin: number | undefined): string | undefined {
  try {
    streams.takeStdin(stdin);
    takeEnvironment(request.environment);
    if (process.cwd() !== request.workingDirectory) process.chdir(request.workingDirectory);
    return reasonToDecline(request, () => streams.readAhead());
  } catch {
    return "directory";
  }
}

function run(connection: Connection, streams: Streams, { argv }: Request, runCall: RunCall): void {
  let status = 1;
  try {
    status = runCall(argv);
  } catch (error) {
    if (reasonLeft() === undefined) throw error;
  }
  const reason = reasonLeft();
  if (reason !== undefined) return void decline(connection, reason);
  board.count(SERVED);
  const message = doneMessage(status, streams.written(1), streams.written(2));
  if (message !== undefined && connection.send(message)) return;
  connection.send(plainMessage(DONE_IN_FILES, status), streams.files());
  streams.reset(true);
}
