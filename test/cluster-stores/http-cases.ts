/** For http.test.ts, in a network of its own: servers that are wrong in one way each, and what HttpClient says of them. */
import { HttpClient, type HttpRequest } from "../../src/cluster-stores/http.ts";
import { delay } from "../../src/cluster-stores/delay.ts";

const MB = 1024 * 1024;

const compressed = Bun.gzipSync(new Uint8Array(80 * MB));

type Answer = (request: Request) => Response | Promise<Response>;

function endless(bytes: number, everyMs: number): Answer {
  return () =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(new Uint8Array(bytes));
          await delay(everyMs);
        },
      }),
    );
}

const answers: Record<string, Answer> = {
  text: (request) => request.text().then((text) => new Response(`${request.method} ${text}`, { status: 201 })),
  large: endless(8 * MB, 0),
  slow: endless(1, 50),
  silent: () => new Promise(() => {}),
  compressed: () => new Response(compressed, { headers: { "content-encoding": "gzip" } }),
  elsewhere: () => Response.redirect("http://127.0.0.1:9/"),
  lines: () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          for (const part of ["one\ntw", "o\n\nthr", "ee ", "€".slice(0, 1), "\n"]) {
            controller.enqueue(new TextEncoder().encode(part));
            await delay(20);
          }
          controller.close();
        },
      }),
    ),
  "a long line": endless(MB, 0),
};

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: (request) => answers[decodeURIComponent(new URL(request.url).pathname.slice(1))]!(request),
});
const client = new HttpClient("a server", () => ({ caFrom: "", nameKey: "" }));
const patient = new HttpClient("a server", () => ({ caFrom: "", nameKey: "" }), 60_000);
const at = `http://127.0.0.1:${server.port}`;
const said: Record<string, unknown> = {};

async function note(name: string, work: () => Promise<unknown>): Promise<void> {
  try {
    said[name] = await work();
  } catch (error) {
    const { message, kind } = error as { message: string; kind?: string };
    said[name] = { kind, message: message.replace(at, "AT") };
  }
}

const get: HttpRequest = { method: "GET" };

async function linesOf(path: string, signals: AbortSignal[] = []): Promise<unknown> {
  const { status, lines, goOn } = await client.stream(`${at}/${path}`, get, signals), heard: string[] = [];
  goOn();
  for await (const line of lines()) heard.push(line);
  return { status, heard };
}

await note("text", () => client.request(`${at}/text`, { method: "POST", body: "hello €" }));
await note("large", () => patient.request(`${at}/large`, get));
for (const path of ["slow", "silent"]) await note(path, () => client.request(`${at}/${path}`, get));
await note("compressed", async () => {
  const { status, text } = await patient.request(`${at}/compressed`, get);
  return { status, isSmall: text.length < MB };
});
await note("elsewhere", async () => (await client.request(`${at}/elsewhere`, get)).status);
await note("lines", () => linesOf("lines"));
await note("a long line", () => linesOf("a%20long%20line"));
await note("a stream that outlives the limit", async () => {
  const stop = new AbortController(), begun = performance.now();
  const { lines, goOn } = await client.stream(`${at}/slow`, get, [stop.signal]);
  goOn();
  setTimeout(() => stop.abort(), 2500);
  try {
    await lines().next();
  } finally {
    said["outlived"] = performance.now() - begun >= 2400;
  }
});
await note("an aborted signal", () => linesOf("lines", [AbortSignal.abort()]));

// How often a server gets a request that it closes on, where an earlier one has kept the connection.
for (const method of ["GET", "POST", "PUT", "DELETE"] as const) {
  const got: string[] = [];
  using closing = Bun.listen<undefined>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        const text = bytes.toString();
        got.push(text.slice(0, text.indexOf(" HTTP")));
        if (text.startsWith("GET /first")) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        else socket.end();
      },
    },
  });
  const other = `http://127.0.0.1:${closing.port}`;
  await client.request(`${other}/first`, get);
  const error = await client.request(`${other}/next`, { method }).then(() => undefined, (reason: Error) => reason);
  said[`${method} on a connection that ends`] = { got, error: error?.message.replace(other, "AT") };
}

await note("a server that is gone", () => client.request("http://127.0.0.1:9/", get));
client.close();
await note("a closed client", () => client.request(`${at}/text`, get));
console.log(JSON.stringify(said));
process.exit(0);
