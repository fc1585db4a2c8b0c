/** Requests to the API server, with the credential of the moment: JSON in, JSON out. */
import { errorText, undefinedOnError } from "../../cni/error.ts";
import { valueAt } from "../../cni/json.ts";
import { StoreSilent } from "../../cluster/effects.ts";
import { delay } from "../delay.ts";
import { HttpClient, type HttpRequest } from "../http.ts";
import type { Credential, Credentials } from "./credentials.ts";

/** JSON is what it answers with, for lists and single objects; a Table has only the columns. */
export const JSON_TYPE = "application/json", TABLE_TYPE = `${JSON_TYPE};as=Table;v=v1;g=meta.k8s.io`;

export interface ApiRequest {
  method: HttpRequest["method"];
  /** From the server's root on. */
  path: string;
  body?: object;
  accept?: string;
}

export interface ApiAnswer {
  status: number;
  /** Undefined for what is no JSON. */
  body: unknown;
  /** A Status' message, or the text. */
  message: string;
  /** What it was asked with, for sentences. */
  credential: Credential;
}

/** A document a line, undefined for what is none; or why there are none. */
export type ApiStream = ApiAnswer | { documents: AsyncGenerator<unknown, void> };

const LIMIT_MS = 2000;

/** No request was sent, so nothing has happened. */
export class NotAsked extends StoreSilent {}

export class KubernetesApi {
  private readonly http = new HttpClient("the API server", () => this.chosen!.tls, LIMIT_MS);
  /** For the request that begins: token and certificate are of one moment. */
  private chosen?: Credential;

  constructor(private readonly credentials: Credentials) {}

  /** Throws StoreSilent when there is no answer: what was asked may have happened, or may happen yet. */
  async ask(request: ApiRequest): Promise<ApiAnswer> {
    const deadline = performance.now() + LIMIT_MS;
    let answer = await this.askOnce(request);
    if (answer.status === 401) {
      this.credentials.renew();
      answer = await this.askOnce(request);
    }
    // It was not carried out.
    while (answer.status === 429) {
      const pauseMs = askedPauseMs(answer.body);
      if (performance.now() + pauseMs >= deadline) break;
      await delay(pauseMs);
      answer = await this.askOnce(request);
    }
    return answer;
  }

  private async askOnce({ method, path, body, accept = JSON_TYPE }: ApiRequest): Promise<ApiAnswer> {
    const credential = this.credential();
    try {
      const { status, text } = await this.http.request(`${credential.server}${path}`, {
        method,
        headers: headersFor(credential, accept, body !== undefined),
        ...body !== undefined && { body: JSON.stringify(body) },
      });
      return { status, ...bodyIn(text), credential };
    } catch (error) {
      throw new StoreSilent(errorText(error));
    }
  }

  /** An answer without an end. Throws StoreSilent, as its lines do. */
  async stream(path: string, signals: readonly AbortSignal[]): Promise<ApiStream> {
    const credential = this.credential();
    try {
      const headers = headersFor(credential, JSON_TYPE, false);
      const stream = await this.http.stream(`${credential.server}${path}`, { method: "GET", headers }, signals);
      if (stream.status === 200) {
        stream.goOn();
        return { documents: documentsIn(stream.lines()) };
      }
      if (stream.status === 401) this.credentials.renew();
      return { status: stream.status, ...bodyIn(await stream.text()), credential };
    } catch (error) {
      throw new StoreSilent(errorText(error));
    }
  }

  close(): void {
    this.http.close();
  }

  /** Throws NotAsked. */
  private credential(): Credential {
    try {
      return this.chosen = this.credentials.current();
    } catch (error) {
      throw new NotAsked(errorText(error));
    }
  }
}

async function* documentsIn(lines: AsyncGenerator<string, void>): AsyncGenerator<unknown, void> {
  try {
    for await (const line of lines) yield bodyIn(line).body;
  } catch (error) {
    throw new StoreSilent(errorText(error));
  }
}

function headersFor({ token }: Credential, accept: string, hasBody: boolean): Record<string, string> {
  return {
    accept,
    // Packing takes the server longer than sending.
    "accept-encoding": "identity",
    ...hasBody && { "content-type": JSON_TYPE },
    ...token !== undefined && { authorization: `Bearer ${token}` },
  };
}

/** Messages repeat what was sent. */
const MESSAGE_LIMIT = 1000;

function bodyIn(text: string): { body: unknown; message: string } {
  const body = undefinedOnError(() => JSON.parse(text) as unknown), message = valueAt(body, "message");
  return { body, message: (typeof message === "string" ? message : text.trim()).slice(0, MESSAGE_LIMIT) };
}

const USUAL_PAUSE_MS = 1000;

function askedPauseMs(body: unknown): number {
  const seconds = valueAt(body, "details", "retryAfterSeconds");
  return typeof seconds === "number" ? seconds * 1000 : USUAL_PAUSE_MS;
}
