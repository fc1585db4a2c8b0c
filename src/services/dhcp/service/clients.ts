/** The clients of the service: one line from each, one line to each. No client can keep the service waiting. */
import { errorText } from "../../../cni/error.ts";
import { closeFile } from "../../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../../ffi/libc.ts";
import { receiveWithDescriptors, sendMessage } from "../../../ffi/socket/message.ts";
import { acceptNext } from "../../../ffi/socket/unix.ts";
import {
  type Answer,
  failure,
  InvalidRequest,
  LONGEST_LINE,
  readServiceRequest,
  type ServiceRequest,
} from "../service-protocol.ts";
import { whyRefused } from "./admission.ts";
import { say, sayRarely } from "./log.ts";

export interface Client {
  answer(answer: Answer): void;
  /** Called when the client goes away before it has an answer. */
  onGone: (() => void) | undefined;
}

/** `netns`: an open descriptor of the container's namespace, which is closed afterwards. */
export type Serve = (request: ServiceRequest, client: Client, netns: number | undefined) => void;

/** The number of clients at a time. Others wait in the kernel. */
const MOST = 512;
/** The service accepts so many in one go. A refused client leaves room for the next one, so there might be no end. */
const MOST_AT_ONCE = 16;
/** The pause until the next attempt to accept, when the process or the host has no descriptor left. */
const PAUSE_S = 1;
/** How long a client may take to send its line, in seconds. */
const PATIENCE_S = 10;
const NEWLINE = 10;
const ANSWER_TO_GO = "HTTP/1.0 501 this is Patchbay's DHCP service; Patchbay's dhcp plugin speaks with it\r\n\r\n";

/** One buffer for all clients: its bytes are copied before the next client is served. */
const buffer = new Uint8Array(LONGEST_LINE);

export class Clients {
  private readonly connected = new Map<number, Connection>();
  private pausedUntil = -Infinity;
  /** Accepted, but there was no room to look at who it is. */
  private unknown: number | undefined;

  constructor(private readonly listening: number, private readonly serve: Serve) {}

  get areConnected(): boolean {
    return this.connected.size > 0;
  }

  get fds(): number[] {
    const takesMore = this.connected.size < MOST && this.pausedUntil === -Infinity;
    return takesMore ? [this.listening, ...this.connected.keys()] : [...this.connected.keys()];
  }

  get due(): number {
    let due = this.pausedUntil === -Infinity ? Infinity : this.pausedUntil;
    for (const one of this.connected.values()) due = Math.min(due, one.due);
    return due;
  }

  wake(ready: ReadonlySet<number>, now: number): void {
    for (const [fd, connection] of [...this.connected]) {
      // A request of one client may have ended the connection of another.
      if (connection.isClosed) continue;
      try {
        if (ready.has(fd)) connection.read();
      } catch (error) {
        say(`while a request was served: ${error instanceof Error ? error.stack : error}`);
        connection.close();
      }
      if (now >= connection.due) connection.close();
    }
    if (now >= this.pausedUntil) this.pausedUntil = -Infinity;
    const isWaiting = this.unknown !== undefined && this.pausedUntil === -Infinity;
    if (isWaiting || ready.has(this.listening)) this.accept(now);
  }

  private accept(now: number): void {
    try {
      for (let taken = 0; taken < MOST_AT_ONCE && this.connected.size < MOST; taken++) {
        if (!this.acceptNext(now)) return;
      }
    } catch (error) {
      sayRarely("accept", `no connection is accepted for a moment: ${errorText(error)}`);
      this.pausedUntil = now + PAUSE_S;
    }
  }

  /** Returns false when nobody has connected. Throws SyscallError when there is no room for another one. */
  private acceptNext(now: number): boolean {
    const fd = this.unknown ??= acceptNext(this.listening);
    if (fd === undefined) return false;
    const refusal = whyRefused(fd);
    this.unknown = undefined;
    // The next descriptor that is opened may have the same number.
    const connection = new Connection(fd, now + PATIENCE_S, this.serve, () => this.connected.delete(fd));
    if (refusal === undefined) this.connected.set(fd, connection);
    else connection.answer(failure(refusal.text, refusal.hint));
    return true;
  }
}

class Connection implements Client {
  private line = new Uint8Array(0);
  /** A descriptor of the container's namespace. */
  private netns: number | undefined;
  onGone: (() => void) | undefined;
  isClosed = false;
  private hasAsked = false;

  constructor(
    private readonly fd: number,
    /** When it is closed, unless it has said what it wants. */
    public due: number,
    private readonly serve: Serve,
    /** Called before the descriptor is closed. */
    private readonly forget: () => void,
  ) {}

  /** More of the line has arrived, or the end. */
  read(): void {
    const most = this.netns === undefined && !this.hasAsked ? 1 : 0;
    const { length, descriptors } = receiveWithDescriptors(this.fd, buffer, most);
    this.netns ??= descriptors[0];
    if (length < 0) return;
    // A client that goes on talking would keep the service busy for as long as the answer takes.
    if (length === 0 || this.hasAsked) return this.end();
    const line = new Uint8Array(this.line.length + length);
    line.set(this.line);
    line.set(buffer.subarray(0, length), this.line.length);
    this.line = line;
    const end = line.indexOf(NEWLINE);
    if (end >= 0) return this.serveLine(fromUtf8(line.subarray(0, end)));
    if (line.length > LONGEST_LINE) this.answer(failure(`the request is longer than ${LONGEST_LINE} bytes`));
  }

  private serveLine(line: string): void {
    this.hasAsked = true;
    this.due = Infinity;
    this.line = new Uint8Array(0);
    // Go's plugin begins so.
    if (line.startsWith("CONNECT ")) return this.close(ANSWER_TO_GO);
    try {
      const request = readServiceRequest(line), { netns } = this;
      // The service closes it from now on.
      this.netns = undefined;
      this.serve(request, this, netns);
    } catch (error) {
      this.answer(failure(errorText(error), error instanceof InvalidRequest ? error.hint : undefined));
    }
  }

  private end(): void {
    const { onGone } = this;
    this.close();
    onGone?.();
  }

  answer(answer: Answer): void {
    this.close(`${JSON.stringify(answer)}\n`);
  }

  close(text = ""): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onGone = undefined;
    this.forget();
    // The kernel's buffer takes more than the longest answer.
    if (text !== "") sendMessage(this.fd, utf8(text));
    if (this.netns !== undefined) closeFile(this.netns);
    closeFile(this.fd);
  }
}
