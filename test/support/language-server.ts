/** VS Code's language server for JSON, as an editor speaks with it: by the Language Server Protocol over a pipe. */
import { join } from "node:path";
import { root } from "./documents.ts";

interface Message {
  id?: number;
  method?: string;
  params?: object;
  result?: unknown;
}

export interface Diagnostic {
  message: string;
  range: { start: { line: number; character: number } };
}

const SERVER = join(root, "node_modules/vscode-json-languageserver/bin/vscode-json-languageserver");

export class LanguageServer implements AsyncDisposable {
  readonly #process = Bun.spawn([process.execPath, SERVER, "--stdio"], { stdin: "pipe", stdout: "pipe" });
  /** By the number of a question, or by the file that the server is to judge. */
  readonly #awaited = new Map<number | string, (message: Message) => void>();
  #asked = 0;

  /** `settings` are those of the editor. */
  static async start(settings: object): Promise<LanguageServer> {
    const server = new LanguageServer();
    void server.#receive();
    const capabilities = { textDocument: { completion: { completionItem: { snippetSupport: true } } } };
    await server.ask("initialize", { processId: process.pid, rootUri: null, capabilities });
    server.#send({ method: "workspace/didChangeConfiguration", params: { settings } });
    return server;
  }

  /** Opens a file, and returns what the server finds wrong in it. */
  async open(uri: string, text: string): Promise<Diagnostic[]> {
    const textDocument = { uri, languageId: "json", version: 1, text };
    const { params } = await this.#answer(uri, { method: "textDocument/didOpen", params: { textDocument } });
    return (params as { diagnostics: Diagnostic[] }).diagnostics;
  }

  async ask(method: string, params: object): Promise<unknown> {
    const id = ++this.#asked;
    return (await this.#answer(id, { id, method, params })).result;
  }

  #answer(to: number | string, message: Message): Promise<Message> {
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#awaited.set(to, resolve);
    this.#send(message);
    return promise;
  }

  #send(message: Message): void {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#process.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    this.#process.stdin.flush();
  }

  async #receive(): Promise<void> {
    let received = Buffer.alloc(0);
    for await (const part of this.#process.stdout) {
      received = Buffer.concat([received, part]);
      while (true) {
        const head = /^Content-Length: (\d+)\r\n(?:.+\r\n)*\r\n/.exec(received.toString("latin1"));
        if (head === null || received.length < head[0].length + Number(head[1])) break;
        const end = head[0].length + Number(head[1]);
        const message: Message = JSON.parse(received.toString("utf8", head[0].length, end));
        received = received.subarray(end);
        const to = message.method === "textDocument/publishDiagnostics"
          ? (message.params as { uri: string }).uri
          : message.id;
        this.#awaited.get(to!)?.(message);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#process.exited;
  }
}
