/** A daemon that begins with src/services/daemon: it is found where it listens, obeys its signals, and leaves nothing. */
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { closeFile } from "../../../src/ffi/files.ts";
import { connectTo } from "../../../src/ffi/socket/unix.ts";

const sources = resolve(import.meta.dir, "../../../src");

/** Says so for each connection. At the third it becomes itself again. */
const program = (path: string) => `
  import { environmentEntries, variable } from "${sources}/ffi/environment.ts";
  import { Daemon } from "${sources}/services/daemon/daemon.ts";
  import { Listener, whoListens } from "${sources}/services/daemon/listener.ts";
  import { closeFile } from "${sources}/ffi/files.ts";
  import { SOCK_STREAM } from "${sources}/ffi/socket/socket.ts";
  import { acceptNext } from "${sources}/ffi/socket/unix.ts";

  const daemon = Daemon.begin(process.argv);
  const listener = Listener.handedOver("${path}", SOCK_STREAM) ?? Listener.open("${path}", SOCK_STREAM);
  console.log("listens", whoListens("${path}", SOCK_STREAM) === process.pid);
  const names = environmentEntries().map((entry) => new TextDecoder().decode(entry).split("=")[0]);
  const once = ["PATCHBAY_PREPARED", "LISTEN_PID", "LISTEN_FDNAMES", "OTHER"];
  console.log(once.map((name) => names.filter((one) => one === name).length).join(), listener.isOwn, variable("OTHER"));
  for (let connections = 0;;) {
    const { ready, mustEnd } = daemon.wait([listener.fd], 60_000);
    if (mustEnd) break;
    for (let fd; ready.has(listener.fd) && (fd = acceptNext(listener.fd)) !== undefined;) {
      console.log("connected");
      closeFile(fd);
      if (++connections === 3) daemon.execute(process.execPath, process.argv, listener);
    }
  }
  listener.close();
  console.log("ends");
  process.exit(0);
`;

test("a daemon serves until a signal that it was not told to ignore, also as the program that it has become", async () => {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-daemon-")), path = join(directory, "socket");
  writeFileSync(join(directory, "daemon.ts"), program(path));
  const command = `trap "" HUP; OTHER=1=2 exec ${process.execPath} ${directory}/daemon.ts`;
  const daemon = Bun.spawn(["sh", "-c", command], { stdout: "pipe" }), reader = daemon.stdout.getReader();
  let said = "";
  const untilSaid = async (text: string) => {
    while (!said.includes(text)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`it ended, having said ${said}`);
      said += new TextDecoder().decode(value);
    }
  };
  try {
    const connect = () => closeFile(connectTo(path));
    await untilSaid("listens true\n1,0,0,1 true 1=2\nconnected\n");
    daemon.kill("SIGHUP");
    connect();
    await untilSaid("connected\nconnected\n");
    said = "";
    connect();
    await untilSaid("connected\nlistens true\n1,1,1,1 true 1=2\nconnected\n");
    daemon.kill("SIGTERM");
    expect(await daemon.exited).toBe(0);
    await untilSaid("ends\n");
    expect(existsSync(path)).toBe(false);
  } finally {
    daemon.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  }
});
