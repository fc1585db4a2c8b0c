/** A client of the service's socket that speaks as the plugin does, or as it never would. */
import { resolve } from "node:path";
import type { Machine } from "../machine.ts";

export interface Said {
  text: string;
  /** A file whose descriptor goes with the text. */
  open?: string;
  /** A command that executes who says it. */
  as?: readonly string[];
  /** Reads nothing. */
  isDeaf?: boolean;
}

const SOURCES = resolve(import.meta.dir, "../../../src");

/** Says it on `count` connections, and then that it does so. Ends when all of them are closed from the other side. */
const program = `
  import { sendMessage, receiveMessage } from "${SOURCES}/ffi/socket/message.ts";
  import { connectTo } from "${SOURCES}/ffi/socket/unix.ts";
  import { openFile } from "${SOURCES}/ffi/files.ts";
  const [socket, text, open, count, isDeaf] = JSON.parse(process.argv.at(-1));
  const all = Array.from({ length: count }, () => connectTo(socket));
  const given = open === "" ? [] : [openFile(open, 0)];
  for (const fd of all) if (text !== "") sendMessage(fd, new TextEncoder().encode(text), given);
  process.stdout.write("said\\n");
  if (isDeaf) await Bun.stdin.text();
  const bytes = new Uint8Array(65536);
  for (const fd of all) {
    for (let length; (length = receiveMessage(fd, bytes)) > 0;) {
      process.stdout.write(new TextDecoder().decode(bytes.subarray(0, length)));
    }
  }
`;

export interface Crowd {
  /** What came back, when the last connection has been closed from the other side. */
  readonly closed: Promise<string>;
  /** Goes away by itself. */
  end(): Promise<void>;
}

/** Returns when all of them are connected and have said it. */
export async function connectFrom(
  machine: Machine,
  socket: string,
  { text, open = "", as = [], isDeaf = false, count = 1 }: Said & { count?: number },
): Promise<Crowd> {
  const command = [...as, process.execPath, "-e", program, JSON.stringify([socket, text, open, count, isDeaf])];
  const child = machine.start(command);
  const reader = child.stdout.getReader(), decoder = new TextDecoder();
  const read = async () => {
    const { value } = await reader.read();
    return value === undefined ? undefined : decoder.decode(value, { stream: true });
  };
  let told = "";
  while (!told.includes("said\n")) {
    const more = await read();
    if (more === undefined) throw new Error(`nothing could be said: ${await child.stderr.text()}`);
    told += more;
  }
  const closed = (async () => {
    for (let more = await read(); more !== undefined; more = await read()) told += more;
    await child.exited;
    return told.replace("said\n", "");
  })();
  const end = async () => {
    child.kill("SIGKILL");
    await closed;
  };
  return { closed, end };
}

/** Returns what came back before the connection was closed. */
export async function say(machine: Machine, socket: string, said: Said): Promise<string> {
  return await (await connectFrom(machine, socket, said)).closed;
}
