/** A daemon that begins with src/daemon: it is found where it listens, obeys its signals, and leaves nothing. */
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const sources = resolve(import.meta.dir, "../../src");

/** Says so for each connection. */
const program = (path: string) => `
  import { Daemon } from "${sources}/daemon/daemon.ts";
  import { Listener, whoListens } from "${sources}/daemon/listener.ts";
  import { closeFile } from "${sources}/ffi/files.ts";
  import { SOCK_STREAM } from "${sources}/ffi/socket/socket.ts";
  import { acceptNext } from "${sources}/ffi/socket/unix.ts";

  const daemon = Daemon.begin(process.argv), listener = Listener.open("${path}", SOCK_STREAM);
  console.log("listens", whoListens("${path}", SOCK_STREAM) === process.pid);
  for (;;) {
    const { ready, mustEnd } = daemon.wait([listener.fd], 60_000);
    if (mustEnd) break;
    for (let fd; ready.has(listener.fd) && (fd = acceptNext(listener.fd)) !== undefined;) {
      console.log("connected");
      closeFile(fd);
    }
  }
  listener.close();
  console.log("ends");
  process.exit(0);
`;

test("a daemon serves until a signal that it was not told to ignore, and removes its socket", async () => {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-daemon-")), path = join(directory, "socket");
  writeFileSync(join(directory, "daemon.ts"), program(path));
  const command = `trap "" HUP; exec ${process.execPath} ${directory}/daemon.ts`;
  const daemon = Bun.spawn(["sh", "-c", command], { stdout: "pipe" }), reader = daemon.stdout.getReader();
  let said = "";
  const untilSaid = async (text: string) => {
    while (!said.includes(text)) said += new TextDecoder().decode((await reader.read()).value);
  };
  try {
    await untilSaid("listens true\nconnected\n");
    daemon.kill("SIGHUP");
    (await Bun.connect({ unix: path, socket: { data() {} } })).end();
    await untilSaid("connected\nconnected\n");
    daemon.kill("SIGTERM");
    expect(await daemon.exited).toBe(0);
    await untilSaid("ends\n");
    expect(existsSync(path)).toBe(false);
  } finally {
    daemon.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  }
});
