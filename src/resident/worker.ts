/**
 * A worker of the resident: accepts one call after the other and runs it as a process of its own would, synchronously.
 * It ends when its parent ends, between two calls.
 */
import { endCall, LeftToCaller, processId, takeCall } from "../ffi/calls.ts";
import { takeEnvironment } from "../ffi/environment.ts";
import { closeFile } from "../ffi/files.ts";
import { keepFromNowOn } from "../ffi/kept.ts";
import { forgetEnded } from "../ffi/spawn.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import { ownBuild } from "./build.ts";
import { Connection } from "./connection.ts";
import { examineNetworks } from "../runtime/examination.ts";
import { leaveNetworkThatWaits, whyNotHere } from "./declining.ts";
import { whyUnlike } from "./likeness.ts";
import {
  DECLINED,
  doneAnswer,
  doneInFilesAnswer,
  plainAnswer,
  readRequest,
  READY,
  type Request,
} from "./protocol.ts";
import { Streams } from "./streams.ts";

export const LISTENING = 3, LIFELINE = 4;

/** One that has served many calls makes room for a new one. */
const CALLS_OF_A_LIFE = 20_000;

/** Runs a call by the name and the arguments it was called with; environment and streams are in place. */
export type RunCall = (argv: readonly string[]) => number;

export function work(runCall: RunCall): number {
  const streams = new Streams(), build = ownBuild();
  examineNetworks(leaveNetworkThatWaits);
  keepFromNowOn();
  // The build's policy is for a process that ends soon.
  Bun.unsafe.setJITPolicy(1);
  for (let calls = 0; calls < CALLS_OF_A_LIFE && waitForCaller(); calls++) {
    const connection = Connection.accept(LISTENING);
    if (connection === undefined) continue;
    try {
      serve(connection, streams, build, runCall);
    } finally {
      connection.close();
    }
  }
  return 0;
}

/** False when the parent is gone. */
function waitForCaller(): boolean {
  const wanted = [LISTENING, LIFELINE].map((fd) => ({ fd, events: POLLIN }));
  let ready = poll(wanted, -1);
  while (ready.size === 0) ready = poll(wanted, -1);
  return !ready.has(LIFELINE);
}

function serve(connection: Connection, streams: Streams, build: Uint8Array, runCall: RunCall): void {
  const received = connection.receive();
  if (received === undefined) return;
  const { message, descriptors } = received;
  try {
    const request = readRequest(message);
    if (request === undefined || descriptors.length > 1) return;
    const { peerPid } = connection;
    const isOurs = Buffer.compare(request.build, build) === 0 && whyUnlike(peerPid) === undefined;
    if (!isOurs || !takesPlace(request, streams, descriptors[0])) {
      connection.send(plainAnswer(DECLINED));
    } else if (connection.send(plainAnswer(READY)) && connection.receive() !== undefined) {
      takeCall({ id: idOf(peerPid), isGone: () => connection.isGone });
      run(connection, streams, request, runCall);
    }
  } finally {
    for (const fd of descriptors) closeFile(fd);
    streams.reset(false);
    // Where a caller was may be unmounted later.
    if (process.cwd() !== "/") process.chdir("/");
    endCall();
    // Those that remove links for us (ffi/reaper.ts).
    forgetEnded();
  }
}

/** One that has ended meanwhile will not look for what was begun in its name. */
function idOf(pid: number): string | undefined {
  try {
    return processId(pid);
  } catch {
    return undefined;
  }
}

/** Puts the caller's stdin, environment and directory in place of ours. False when the call is not for us. */
function takesPlace(request: Request, streams: Streams, stdin: number | undefined): boolean {
  try {
    streams.takeStdin(stdin);
    takeEnvironment(request.environment);
    if (process.cwd() !== request.workingDirectory) process.chdir(request.workingDirectory);
    const reason = whyNotHere(nameOf(request), request.argv);
    streams.rewindStdin();
    return reason === undefined;
  } catch {
    return false;
  }
}

export function nameOf({ argv }: Pick<Request, "argv">): string {
  return argv[0]!.slice(argv[0]!.lastIndexOf("/") + 1);
}

function run(connection: Connection, streams: Streams, { argv }: Request, runCall: RunCall): void {
  let status: number;
  try {
    status = runCall(argv);
  } catch (error) {
    if (!(error instanceof LeftToCaller)) throw error;
    connection.send(plainAnswer(DECLINED));
    return;
  }
  const answer = doneAnswer(status, streams.written(1), streams.written(2));
  if (answer !== undefined) return void connection.send(answer);
  connection.send(doneInFilesAnswer(status), streams.files());
  streams.reset(true);
}
