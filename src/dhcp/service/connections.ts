/** Those who ask the service for something: one line from each, one line to each. None of them can keep it waiting. */
import { errorText } from "../../cni/error.ts";
import { closeFile } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { descriptorsOfLast, peerOf, receiveMessage, sendMessage } from "../../ffi/message.ts";
import { acceptNext } from "../../ffi/unix-socket.ts";
import { type Answer, failure, LONGEST_LINE, NoOrder, type Order, readOrder } from "../order.ts";
import { say, sayRarely } from "./log.ts";

/** At a time; the others wait in the kernel. */
const MOST = 512;
/** For the line, in seconds. */
const PATIENCE_S = 10;
/** Until the next attempt to take somebody on, when the process or the host has no descriptor left. */
const PAUSE_S = 1;
const NEWLINE = 10;

export interface Asker {
  answer(answer: Answer): void;
  /** Called when the asker goes away before it has an answer. */
  onGone: (() => void) | undefined;
}

type Serve = (order: Order, asker: Asker, netns: number | undefined) => void;

class Connection implements Asker {
  private line = new Uint8Array(0);
  private readonly descriptors: number[] = [];
  onGone: (() => void) | undefined;
  isClosed = false;
  private isAsked = false;

  constructor(
    private readonly fd: number,
    /** Until then it has to have said what it wants. */
    public deadline: number,
    private readonly forget: () => void,
  ) {}

  /** What has arrived: more of the line, or the end. */
  read(serve: Serve): void {
    const bytes = new Uint8Array(LONGEST_LINE), length = receiveMessage(this.fd, bytes);
    if (length > 0) this.descriptors.push(...descriptorsOfLast());
    if (length === 0) return this.end();
    if (length < 0 || this.isAsked) return;
    const line = new Uint8Array(this.line.length + length);
    line.set(this.line);
    line.set(bytes.subarray(0, length), this.line.length);
    this.line = line;
    const end = line.indexOf(NEWLINE);
    if (end >= 0) return this.serveLine(fromUtf8(line.subarray(0, end)), serve);
    if (line.length > LONGEST_LINE) this.answer(failure(`the request is longer than ${LONGEST_LINE} bytes`));
  }

  private serveLine(line: string, serve: Serve): void {
    this.isAsked = true;
    this.deadline = Infinity;
    this.line = new Uint8Array(0);
    // What Go's plugin begins with.
    if (line.startsWith("CONNECT ")) return this.close(GO_ANSWER);
    try {
      serve(readOrder(line), this, this.descriptors.shift());
    } catch (error) {
      this.answer(failure(errorText(error), error instanceof NoOrder ? error.hint : undefined));
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
    // At once: the next descriptor that is opened may have its number.
    this.forget();
    // The kernel's buffer takes more than the longest answer.
    if (text !== "") sendMessage(this.fd, utf8(text));
    for (const fd of this.descriptors) closeFile(fd);
    closeFile(this.fd);
  }
}

const GO_ANSWER = "HTTP/1.0 501 this is Patchbay's DHCP service; Patchbay's dhcp plugin speaks with it\r\n\r\n";

export class Connections {
  private readonly all = new Map<number, Connection>();
  private pausedUntil = -Infinity;

  constructor(private readonly listening: number, private readonly serve: Serve) {}

  get fds(): number[] {
    const takesMore = this.all.size < MOST && this.pausedUntil === -Infinity;
    return takesMore ? [this.listening, ...this.all.keys()] : [...this.all.keys()];
  }

  get due(): number {
    let due = this.pausedUntil === -Infinity ? Infinity : this.pausedUntil;
    for (const { deadline } of this.all.values()) due = Math.min(due, deadline);
    return due;
  }

  wake(ready: ReadonlySet<number>, now: number): void {
    for (const [fd, connection] of [...this.all]) {
      // What one asks may have been the end of another.
      if (connection.isClosed) continue;
      try {
        if (ready.has(fd)) connection.read(this.serve);
      } catch (error) {
        say(`while somebody was served: ${error instanceof Error ? error.stack : error}`);
        connection.close();
      }
      if (now >= connection.deadline) connection.close();
    }
    if (now >= this.pausedUntil) this.pausedUntil = -Infinity;
    if (ready.has(this.listening)) this.accept(now);
  }

  private accept(now: number): void {
    while (this.all.size < MOST) {
      const fd = this.acceptNext(now);
      if (fd === undefined) return;
      const uid = peerOf(fd)?.uid;
      // Only root may have addresses and routes set, and namespaces opened.
      if (uid !== 0 && uid !== process.geteuid!()) closeFile(fd);
      else this.all.set(fd, new Connection(fd, now + PATIENCE_S, () => this.all.delete(fd)));
    }
  }

  private acceptNext(now: number): number | undefined {
    try {
      return acceptNext(this.listening);
    } catch (error) {
      sayRarely("accept", `nobody new is served for a moment: ${errorText(error)}`);
      this.pausedUntil = now + PAUSE_S;
      return undefined;
    }
  }
}
