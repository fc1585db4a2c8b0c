/** Those who ask the service for something: one line from each, one line to each. */
import { errorText } from "../../cni/error.ts";
import { closeFile } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { receiveWithDescriptors, sendMessage } from "../../ffi/socket/message.ts";
import { type Answer, failure, LONGEST_LINE, NoOrder, type Order, readOrder } from "../order.ts";
import { Callers, type Connection } from "./callers.ts";

export interface Asker {
  answer(answer: Answer): void;
  /** Called when the asker goes away before it has an answer. */
  onGone: (() => void) | undefined;
}

/** `netns`: an open descriptor of the container's namespace, which is closed afterwards. */
export type Serve = (order: Order, asker: Asker, netns: number | undefined) => void;

const MOST = 512;
/** For the line, in seconds. */
const PATIENCE_S = 10;
const NEWLINE = 10;

/** One for all: what is in it is copied before the next one is served. */
const buffer = new Uint8Array(LONGEST_LINE);

class AskerConnection implements Asker, Connection {
  private line = new Uint8Array(0);
  /** Of the container's namespace. */
  private netns: number | undefined;
  onGone: (() => void) | undefined;
  isClosed = false;
  private isAsked = false;

  constructor(
    private readonly fd: number,
    /** Until then it has to have said what it wants. */
    public due: number,
    private readonly serve: Serve,
    private readonly forget: () => void,
  ) {}

  /** What has arrived: more of the line, or the end. */
  read(): void {
    const most = this.netns === undefined && !this.isAsked ? 1 : 0;
    const { length, descriptors } = receiveWithDescriptors(this.fd, buffer, most);
    this.netns ??= descriptors[0];
    if (length < 0) return;
    // Whoever goes on talking would keep the service busy for as long as the answer takes.
    if (length === 0 || this.isAsked) return this.end();
    const line = new Uint8Array(this.line.length + length);
    line.set(this.line);
    line.set(buffer.subarray(0, length), this.line.length);
    this.line = line;
    const end = line.indexOf(NEWLINE);
    if (end >= 0) return this.serveLine(fromUtf8(line.subarray(0, end)));
    if (line.length > LONGEST_LINE) this.answer(failure(`the request is longer than ${LONGEST_LINE} bytes`));
  }

  private serveLine(line: string): void {
    this.isAsked = true;
    this.due = Infinity;
    this.line = new Uint8Array(0);
    // What Go's plugin begins with.
    if (line.startsWith("CONNECT ")) return this.close(GO_ANSWER);
    try {
      const order = readOrder(line), { netns } = this;
      // It is the service's from now on.
      this.netns = undefined;
      this.serve(order, this, netns);
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
    this.close(lineOf(answer));
  }

  close(text = ""): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onGone = undefined;
    // At once: the next descriptor that is opened may have its number.
    this.forget();
    // The kernel's buffer takes more than the longest answer.
    if (text !== "") sendMessage(this.fd, utf8(text));
    if (this.netns !== undefined) closeFile(this.netns);
    closeFile(this.fd);
  }
}

const GO_ANSWER = "HTTP/1.0 501 this is Patchbay's DHCP service; Patchbay's dhcp plugin speaks with it\r\n\r\n";

function lineOf(answer: Answer): string {
  return `${JSON.stringify(answer)}\n`;
}

export function connections(listening: number, serve: Serve): Callers {
  return new Callers(
    listening,
    MOST,
    (fd, now, forget) => new AskerConnection(fd, now + PATIENCE_S, serve, forget),
    (fd, { text, hint }) => void sendMessage(fd, utf8(lineOf(failure(text, hint)))),
  );
}
