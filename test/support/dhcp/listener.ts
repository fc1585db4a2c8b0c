/** Somebody who listens where the plugin looks for the service, and says what the test wants. */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Segment } from "./link.ts";
import type { Running } from "./running.ts";

const SOURCES = resolve(import.meta.dir, "../../../src");

/** Prints a line for each connection: what was received, and how many descriptors came with it. */
const program = `
  import { readFileSync } from "node:fs";
  import { closeFile } from "${SOURCES}/ffi/files.ts";
  import { receiveWithDescriptors, sendMessage } from "${SOURCES}/ffi/socket/message.ts";
  import { poll, POLLIN } from "${SOURCES}/ffi/poll.ts";
  import { acceptNext, listenAt } from "${SOURCES}/ffi/socket/unix.ts";
  const [socket, reply] = JSON.parse(process.argv.at(-1));
  const listening = listenAt(socket), bytes = new Uint8Array(65536);
  const untilReadable = (fd) => poll([{ fd, events: POLLIN }], -1);
  console.log("listens");
  for (;;) {
    untilReadable(listening);
    const fd = acceptNext(listening);
    if (fd === undefined) continue;
    untilReadable(fd);
    const { length, descriptors } = receiveWithDescriptors(fd, bytes, 1);
    const text = new TextDecoder().decode(bytes.subarray(0, Math.max(0, length)));
    console.log(JSON.stringify({ text, descriptors: descriptors.length }));
    if (text !== "") sendMessage(fd, new TextEncoder().encode(readFileSync(reply, "utf8")));
    for (const each of [...descriptors, fd]) closeFile(each);
  }
`;

export interface Visit {
  /** "" when the client that connected has said nothing. */
  text: string;
  descriptors: number;
}

let count = 0;

export class Listener implements AsyncDisposable {
  private constructor(private readonly running: Running, private readonly reply: string) {}

  /** `as`: a command that executes it. */
  static async start(segment: Segment, socket: string, as: readonly string[] = []): Promise<Listener> {
    const files = join(segment.folder, `listener-${++count}`), reply = `${files}.reply`;
    writeFileSync(reply, "");
    const command = [...as, process.execPath, "-e", program, JSON.stringify([socket, reply])];
    const running = segment.start(undefined, command, { log: `${files}.log` });
    await running.until(() => running.log().includes("listens\n"));
    return new Listener(running, reply);
  }

  /** To each from now on; "" closes the connection. */
  say(text: string): void {
    writeFileSync(this.reply, text);
  }

  visits(): Visit[] {
    return this.running.log().split("\n").slice(1, -1).map((line) => JSON.parse(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running.stop();
  }
}
