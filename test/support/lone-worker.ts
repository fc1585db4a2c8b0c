/**
 * A resident's worker (src/frontends/resident/worker.ts) as a process without a resident, and a launcher for it. What its calls do
 * is text: the body of a function that is called with `argv`, writes by `say(text, fd)`, and answers the exit status.
 */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { environmentEntries } from "../../src/ffi/environment.ts";
import { closeFile, O_CREAT, O_RDONLY, O_RDWR, openFile } from "../../src/ffi/files.ts";
import { fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import { allocateOnDisk } from "../../src/ffi/memory.ts";
import { poll, POLLIN } from "../../src/ffi/poll.ts";
import { receiveWithDescriptors, sendMessage } from "../../src/ffi/socket/message.ts";
import { limitWait, SOCK_SEQPACKET } from "../../src/ffi/socket/socket.ts";
import { connectTo, listenAt } from "../../src/ffi/socket/unix.ts";
import { sendSignal, SIGKILL } from "../../src/ffi/signals.ts";
import { type Ending, endingSoFar, openPidfd, openPipe, spawn, waitFor } from "../../src/ffi/spawn.ts";
import { ownBuild } from "../../src/engine/build.ts";
import { boardOf, Slot } from "../../src/frontends/resident/board.ts";

const sources = resolve(import.meta.dir, "../../src");

/** Ends what hangs. */
const LIMIT_MS = 60_000;

const program = (begin: string, body: string) => `
  import { writeSync, readFileSync, readdirSync } from "node:fs";
  import { callerId, forgetAfterCall, isCallerGone, isHandedOver, leaveToCaller } from "${sources}/process/calls.ts";
  import { variable } from "${sources}/ffi/environment.ts";
  import { work } from "${sources}/frontends/resident/worker.ts";
  const say = (text, fd = 1) => writeSync(fd, String(text));
  ${begin}
  process.exit(work(0, 0, (argv) => {
    ${body}
    return 0;
  }));
`;

export interface Answer {
  /** Undefined when the worker has closed the connection. */
  answer: number | undefined;
  status: number;
  stdout: string;
  stderr: string;
}

export interface Request {
  build?: Uint8Array;
  directory?: string;
  argv?: string[];
  environment?: string[];
}

export function requestOf(request: Request = {}): Uint8Array {
  const { build = ownBuild(), directory = "/tmp", argv = ["/opt/loopback"], environment = [] } = request;
  const texts = [directory, ...argv, ...environment].map((text) => `${text}\0`).join("");
  const numbers = new Uint8Array(Uint32Array.of(0x31424350, argv.length, environment.length).buffer);
  return new Uint8Array([...numbers, ...build, ...utf8(texts)]);
}

/** A launcher's end of a connection. */
export class Launcher implements Disposable {
  readonly fd: number;
  private readonly room = new Uint8Array(256 * 1024);

  constructor(path: string) {
    this.fd = connectTo(path, LIMIT_MS, SOCK_SEQPACKET);
    limitWait(this.fd, "SO_RCVTIMEO", LIMIT_MS);
  }

  send(message: Uint8Array, descriptors: readonly number[] = []): void {
    sendMessage(this.fd, message, descriptors);
  }

  /** Throws when nothing comes. */
  hear(): Answer & { files: readonly number[] } {
    const { length, descriptors: files } = receiveWithDescriptors(this.fd, this.room, 2);
    if (length < 0) throw new Error("the worker says nothing");
    if (length === 0) return { answer: undefined, status: 0, stdout: "", stderr: "", files };
    const [answer, status, out, err] = new Uint32Array(this.room.slice(0, 16).buffer);
    if (length !== 16 + out! + err!) throw new Error(`${length} bytes, with ${out} and ${err}`);
    const text = (from: number, to: number) => fromUtf8(this.room.slice(from, to));
    return { answer: answer!, status: status!, stdout: text(16, 16 + out!), stderr: text(16 + out!, length), files };
  }

  [Symbol.dispose](): void {
    closeFile(this.fd);
  }
}

export class LoneWorker implements Disposable {
  private readonly directory = mkdtempSync(join(tmpdir(), "patchbay-worker-"));
  private readonly path = join(this.directory, "socket");
  private readonly listening = listenAt(this.path, SOCK_SEQPACKET);
  private readonly pipe = openPipe();
  private readonly board = openFile(join(this.directory, "board"), O_RDWR | O_CREAT);
  private readonly queue = openPipe();
  private ending: Ending | undefined;
  private isStopped = false;
  readonly pid: number;

  /** `begin` runs before the worker begins. */
  constructor(body: string, begin = "") {
    allocateOnDisk(this.board, 2048, "board");
    const nothing = openFile("/dev/null", O_RDONLY);
    this.pid = spawn({
      path: process.execPath,
      argv: ["bun", "-e", program(begin, body)],
      environment: environmentEntries(),
      descriptors: [nothing, 1, 2, this.listening, this.pipe[0], this.board, this.queue[1]],
    });
    closeFile(nothing);
  }

  launcher(): Launcher {
    return new Launcher(this.path);
  }

  /** A launcher has its messages ready when it connects. Here the worker waits for them, however busy the machine is. */
  ask(...messages: readonly Uint8Array[]): Launcher {
    return this.askWith([], ...messages);
  }

  askWith(descriptors: readonly number[], ...messages: readonly Uint8Array[]): Launcher {
    return this.stopped(() => {
      const launcher = this.launcher();
      for (const message of messages) launcher.send(message, descriptors);
      return launcher;
    });
  }

  /** All that is answered to one request: to the last word, and whether the worker closes the connection after it. */
  call(request: Request = {}, stdin?: number): { answers: number[]; last: Answer } {
    using launcher = this.askWith(stdin === undefined ? [] : [stdin], requestOf(request));
    const answers: number[] = [];
    let last: Answer = { answer: undefined, status: 0, stdout: "", stderr: "" };
    for (;;) {
      const { files, ...heard } = launcher.hear();
      for (const fd of files) closeFile(fd);
      if (heard.answer === undefined) return { answers, last };
      answers.push(heard.answer);
      last = heard;
    }
  }

  /** What a call that is served says. */
  said(...words: string[]): string {
    return this.call({ argv: ["/opt/loopback", ...words] }).last.stdout;
  }

  /** Whether it has said that calls wait. */
  hasToldQueue(): boolean {
    return poll([{ fd: this.queue[0], events: POLLIN }], 0).size > 0;
  }

  /** What it says of itself on the board. */
  slot(): { process: number; isBusy: boolean; calls: number } {
    const numbers = new Uint32Array(readFileSync(`/proc/self/fd/${this.board}`).slice(0, 16).buffer);
    return { process: numbers[0]!, isBusy: numbers[1] !== 0, calls: numbers[2]! };
  }

  counts(): Record<string, number> {
    // This process stands in for its resident.
    new Slot(this.board, 128).ready();
    const { workers } = boardOf(process.pid, join(this.directory, "board"))!;
    return Object.fromEntries(workers[0]?.counts ?? []);
  }

  /** Its descriptors, and where they lead. */
  descriptors(): string[] {
    return readdirSync(`/proc/${this.pid}/fd`).map((fd) => `${fd} ${readlinkSync(`/proc/${this.pid}/fd/${fd}`)}`);
  }

  /** While it is stopped. */
  stopped<Value>(work: () => Value): Value {
    if (this.isStopped) return work();
    process.kill(this.pid, "SIGSTOP");
    this.isStopped = true;
    try {
      return work();
    } finally {
      this.isStopped = false;
      process.kill(this.pid, "SIGCONT");
    }
  }

  /** As when its resident ends. */
  closeLifeline(): void {
    closeFile(this.pipe[1]);
    this.pipe[1] = -1;
  }

  /** Throws when it does not end. */
  end(): Ending {
    const pidfd = openPidfd(this.pid), ready = poll([{ fd: pidfd, events: POLLIN }], LIMIT_MS);
    closeFile(pidfd);
    if (!ready.has(pidfd)) throw new Error("the worker does not end");
    return this.ending ??= waitFor(this.pid);
  }

  [Symbol.dispose](): void {
    if (this.ending === undefined && (this.ending = endingSoFar(this.pid)) === undefined) {
      sendSignal(this.pid, SIGKILL);
      waitFor(this.pid);
    }
    for (const fd of [this.listening, ...this.pipe, this.board, ...this.queue]) if (fd >= 0) closeFile(fd);
    rmSync(this.directory, { recursive: true });
  }
}
