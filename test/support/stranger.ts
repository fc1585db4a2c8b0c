/** Something else than a resident that listens in its place, and answers each caller with the same messages. */
import type { Machine } from "./machine.ts";
import { BOARD, SOCKET } from "./resident.ts";

export interface Stranger {
  answers?: number[][];
  closes?: boolean;
  user?: number;
  backlog?: number;
  fills?: boolean;
  type?: number;
  /** Tries to change what it is given. */
  alters?: boolean;
  /** So many descriptors come with each of its answers. */
  gives?: number;
  /** Says on the board what a worker says: then callers wait for it, also on a busy machine. */
  hasBoard?: boolean;
}

export const SEQPACKET = 5, STREAM = 1;
/** What it has heard, and whether it could change what it was given. */
export const HEARD = "/run/heard", ALTERED = "/run/altered";

const program = `
  import { appendFileSync, writeFileSync } from "node:fs";
  import { millisecondsSinceBoot } from "${import.meta.dir}/../../src/ffi/clock.ts";
  import { closeFile, O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
  import { bind, libc } from "${import.meta.dir}/../../src/ffi/libc.ts";
  import { receiveWithDescriptors, sendMessage } from "${import.meta.dir}/../../src/ffi/socket/message.ts";
  const extra = bind({
    listen: { args: ["i32", "i32"], returns: "i32" },
    accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    setuid: { args: ["u32"], returns: "i32" },
    ftruncate: { args: ["i32", "i64_fast"], returns: "i32" },
  });
  const { answers, closes, user, backlog, fills, type, alters, gives, hasBoard } = JSON.parse(process.argv[1]);
  const sayOnBoard = (sinceMs) => {
    if (hasBoard) writeFileSync("${BOARD}", new Uint8Array(Uint32Array.of(process.pid, sinceMs, 0, 0).buffer));
  };
  sayOnBoard(0);
  const address = new Uint8Array([1, 0, ...new TextEncoder().encode("${SOCKET}"), 0]);
  const fd = libc.socket(1, type, 0);
  if (libc.bind(fd, address, address.length) !== 0) throw new Error("bind");
  if (user !== 0) extra.setuid(user);
  if (extra.listen(fd, backlog) !== 0) throw new Error("listen");
  while (fills && extra.connect(libc.socket(1, type | 0o4000, 0), address, address.length) === 0);
  console.log("listens");
  while (fills) Bun.sleepSync(1000);
  const alter = (given) => {
    const writable = openFile("/proc/self/fd/" + given, O_RDWR);
    const ways = {
      write: () => Number(libc.write(writable, new Uint8Array(2).fill(32), 2)) > 0,
      grow: () => extra.ftruncate(writable, 100000) === 0,
      shrink: () => extra.ftruncate(writable, 0) === 0,
    };
    for (const [way, work] of Object.entries(ways)) if (work()) appendFileSync("${ALTERED}", way + "\\n");
    closeFile(writable);
  };
  const heard = new Uint8Array(200000);
  for (;;) {
    const caller = extra.accept(fd, null, null);
    sayOnBoard(millisecondsSinceBoot());
    const { length, descriptors } = receiveWithDescriptors(caller, heard, 1);
    if (length > 0) appendFileSync("${HEARD}", heard.subarray(0, length));
    for (const one of descriptors) {
      if (alters) alter(one);
      closeFile(one);
    }
    for (const answer of answers) {
      const bytes = new Uint8Array(answer);
      sendMessage(caller, bytes, Array(gives).fill(0));
    }
    if (closes) libc.close(caller);
  }
`;

/** Returns when it listens. `as` is a command that executes it. */
export async function startStranger(machine: Machine, stranger: Stranger, as: readonly string[] = []) {
  const how = {
    answers: [],
    closes: false,
    user: 0,
    backlog: 100,
    fills: false,
    type: SEQPACKET,
    alters: false,
    gives: 0,
    hasBoard: false,
    ...stranger,
  };
  const process_ = machine.start([...as, process.execPath, "-e", program, JSON.stringify(how)]);
  const { value } = await process_.stdout.getReader().read();
  if (value === undefined) throw new Error(`nobody listens: ${await process_.stderr.text()}`);
  const end = async () => {
    process_.kill("SIGKILL");
    await process_.exited;
  };
  return { end, [Symbol.asyncDispose]: end };
}

/** Where it would listen. */
export async function makePlace(machine: Machine): Promise<void> {
  await machine.sh(`mkdir -p -m 700 /run/patchbay; touch ${HEARD} ${ALTERED}; chmod 666 ${HEARD} ${ALTERED}`);
}

/** A word of the protocol, with three numbers (src/frontends/resident/protocol.ts). */
export const answer = (...numbers: number[]) => [...new Uint8Array(Uint32Array.from(numbers).buffer)];
export const READY = 1, DECLINED = 2, DONE = 3, DONE_IN_FILES = 4, PROVE = 5;

/** Whom a caller tells nothing: how such a one is started, and what it does. */
export const NOT_OURS: [name: string, as: string[], stranger: Stranger][] = [
  ["of another user", [], { user: 65534 }],
  ["of another mount namespace", ["unshare", "--mount"], {}],
  ["of another user namespace", ["unshare", "--user", "--map-root-user"], {}],
];
