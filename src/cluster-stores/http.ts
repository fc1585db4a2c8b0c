/**
 * Requests over HTTP/1.1 to the servers of a store. Each has an end and a size, and failures are sentences. The environment
 * changes nothing: no proxy is asked, and certificates are verified.
 */
import { fromUtf8 } from "../ffi/libc.ts";
import type { HttpIdentity } from "./credential-files.ts";
import { NOT_WANTED } from "./delay.ts";
import { failureOf, HttpFailure } from "./transport-errors.ts";

export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  headers?: Readonly<Record<string, string>>;
  body?: string;
}

export interface HttpAnswer {
  status: number;
  text: string;
}

export interface HttpStream {
  status: number;
  /** All of it, within the limits. Throws HttpFailure. */
  text(): Promise<string>;
  /** As they come, until the answer ends. Throws HttpFailure. */
  lines(): AsyncGenerator<string, void>;
  /** From here on, there is no limit of time. */
  goOn(): void;
}

const LIMIT_MS = 2000;
const LIMIT_BYTES = 64 * 1024 * 1024, LINE_LIMIT_BYTES = 8 * 1024 * 1024;

export class HttpClient {
  private pool?: { of: string; session: Bun.FetchSession };
  private readonly closing = new AbortController();

  /** `server` is what answers, for sentences. `identity` is asked for each request that needs TLS. */
  constructor(
    private readonly server: string,
    private readonly identity: () => HttpIdentity,
    private readonly limitMs = LIMIT_MS,
  ) {}

  /** Throws HttpFailure. */
  async request(url: string, request: HttpRequest): Promise<HttpAnswer> {
    const { status, text } = await this.stream(url, request);
    return { status, text: await text() };
  }

  /** An answer that is read as it comes, until a signal ends it. Throws HttpFailure. */
  async stream(url: string, request: HttpRequest, signals: readonly AbortSignal[] = []): Promise<HttpStream> {
    const { origin } = new URL(url), identity = url.startsWith("https:") ? this.identity() : undefined;
    const ending = new Ending(this.limitMs, [this.closing.signal, ...signals]);
    const failed = (error: unknown) => {
      ending.done();
      if (ending.reason !== undefined) return new HttpFailure(`${origin}: ${ending.reason}`, "unknown");
      if (error instanceof TooLarge) return new HttpFailure(`${origin}: ${error.message}`, "unknown");
      return failureOf(error, { origin, server: this.server, identity });
    };
    try {
      const response = await this.send(url, request, identity, ending.signal);
      return {
        status: response.status,
        text: () => textOf(response).then((text) => (ending.done(), text), (error) => Promise.reject(failed(error))),
        async *lines() {
          try {
            yield* linesIn(chunksOf(response));
          } catch (error) {
            throw failed(error);
          } finally {
            ending.done();
          }
        },
        goOn: () => ending.goOn(),
      };
    } catch (error) {
      throw failed(error);
    }
  }

  /** Ends whatever is under way. */
  close(): void {
    this.closing.abort();
    this.pool?.session.close();
  }

  private send(
    url: string,
    { method, headers, body }: HttpRequest,
    identity: HttpIdentity | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    return this.poolFor(identity).fetch(url, {
      method,
      headers: headers as Record<string, string>,
      ...body !== undefined && { body },
      signal,
      redirect: "manual",
      decompress: false,
      // When a connection that was kept ends without an answer, the runtime sends these again: the second one would be told
      // that it has lost against the first.
      keepalive: method === "GET" || method === "POST",
    });
  }

  /** Connections are kept while the certificates are these: new ones are not offered on a connection that is open. */
  private poolFor(identity: HttpIdentity | undefined): Bun.FetchSession {
    const { ca, cert, key, serverName } = identity ?? {}, of = JSON.stringify([ca, cert, key, serverName]);
    if (this.pool?.of === of) return this.pool.session;
    this.pool?.session.close();
    // Said, because NODE_TLS_REJECT_UNAUTHORIZED=0 would count otherwise, and HTTPS_PROXY.
    const tls = identity && { ca, cert, key, serverName, rejectUnauthorized: true };
    const session = new Bun.FetchSession({ proxy: false, ...tls && { tls: withoutUndefined(tls) } });
    this.pool = { of, session };
    return session;
  }
}

/** The runtime takes an undefined certificate for a wrong one. */
function withoutUndefined<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Value;
}

/** What ends a request: its time, and signals. */
class Ending {
  private readonly controller = new AbortController();
  private readonly timer: ReturnType<typeof setTimeout>;
  private readonly stop = () => this.end(NOT_WANTED);
  /** Undefined while it goes on. */
  reason?: string;

  constructor(limitMs: number, private readonly signals: readonly AbortSignal[]) {
    this.timer = setTimeout(() => this.end(`no answer within ${limitMs / 1000} s`), limitMs);
    for (const signal of signals) signal.addEventListener("abort", this.stop);
    if (signals.some(({ aborted }) => aborted)) this.stop();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** From here on there is no limit of time. */
  goOn(): void {
    clearTimeout(this.timer);
  }

  done(): void {
    clearTimeout(this.timer);
    for (const signal of this.signals) signal.removeEventListener("abort", this.stop);
  }

  private end(reason: string): void {
    this.reason ??= reason;
    this.controller.abort();
  }
}

class TooLarge extends Error {}

async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    // Ends the connection when not everything was read.
    reader.cancel().catch(() => {});
  }
}

async function textOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response)) {
    length += chunk.length;
    if (length > LIMIT_BYTES) throw new TooLarge(`the answer is larger than ${LIMIT_BYTES >> 20} MB`);
    parts.push(chunk);
  }
  return fromUtf8(parts.length === 1 ? parts[0]! : new Uint8Array(Buffer.concat(parts)));
}

const NEWLINE = 10;

/** A line may come in parts, and several at once. The last one may lack its end: etcd's gateway writes errors so. */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let parts: Uint8Array[] = [], length = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield fromUtf8(new Uint8Array(Buffer.concat([...parts, chunk.subarray(start, end)])));
      parts = [];
      length = 0;
      start = end + 1;
    }
    parts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > LINE_LIMIT_BYTES) throw new TooLarge(`a line is larger than ${LINE_LIMIT_BYTES >> 20} MB`);
  }
  if (length > 0) yield fromUtf8(new Uint8Array(Buffer.concat(parts)));
}
