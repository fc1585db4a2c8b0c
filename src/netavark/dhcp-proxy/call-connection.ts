/** One connection to the proxy's socket, with the calls that come over it. */
import type { Connection } from "../../dhcp/service/callers.ts";
import { closeFile } from "../../ffi/files.ts";
import { receiveMessage, sendMessage } from "../../ffi/message.ts";
import { log } from "../wire/log.ts";
import { Http2Connection, type Request, type Response } from "./http2/connection.ts";
import { ProtocolError } from "./http2/protocol-error.ts";

/** Without a call, in seconds. */
const PATIENCE_S = 10;
const CHUNK_BYTES = 65_536;

/** One call of somebody. */
export interface Caller {
  answer(response: Response): void;
  onGone: (() => void) | undefined;
}

export type Serve = (request: Request, caller: Caller) => void;

export class CallConnection implements Connection {
  private readonly http: Http2Connection;
  private readonly calls = new Map<number, Caller>();
  private since: number;
  isClosed = false;

  constructor(private readonly fd: number, now: number, serve: Serve, private readonly forget: () => void) {
    this.since = now;
    this.http = new Http2Connection(
      (bytes) => this.send(bytes),
      (request) => this.begin(request, serve),
      (stream) => this.gone(stream),
    );
  }

  get isIdle(): boolean {
    return this.http.isIdle;
  }

  get due(): number {
    return this.isIdle ? this.since + PATIENCE_S : Infinity;
  }

  read(now: number): void {
    const bytes = new Uint8Array(CHUNK_BYTES), length = receiveMessage(this.fd, bytes);
    if (length === 0) return this.close();
    if (length < 0) return;
    this.since = now;
    try {
      this.http.receive(bytes.slice(0, length));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      log("warn", "netavark::dhcp_proxy", `a caller is sent away: ${error.message}`);
      this.close();
    }
  }

  private begin(request: Request, serve: Serve): void {
    const caller: Caller = {
      onGone: undefined,
      answer: (response) => {
        this.calls.delete(request.stream);
        if (!this.isClosed) this.http.answer(request.stream, response);
      },
    };
    this.calls.set(request.stream, caller);
    serve(request, caller);
  }

  private gone(stream: number): void {
    const caller = this.calls.get(stream);
    this.calls.delete(stream);
    caller?.onGone?.();
  }

  /** The kernel's buffer takes more than all that a caller is sent; who does not read it is sent away. */
  private send(bytes: Uint8Array): void {
    if (!this.isClosed && sendMessage(this.fd, bytes) !== bytes.length) this.close();
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    // At once: the next descriptor that is opened may have its number.
    this.forget();
    closeFile(this.fd);
    this.http.end();
  }
}
