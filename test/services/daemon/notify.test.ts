/** What a service says to its manager, and when there is none. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tellManager } from "../../../src/services/daemon/notify.ts";
import { takeEnvironment } from "../../../src/ffi/environment.ts";
import { closeFile } from "../../../src/ffi/files.ts";
import { fromUtf8, libc, utf8 } from "../../../src/ffi/libc.ts";
import { receiveMessage } from "../../../src/ffi/socket/message.ts";
import { AF_UNIX, openSocket, SOCK_DGRAM, SOCK_NONBLOCK } from "../../../src/ffi/socket/socket.ts";
import { unixAddress } from "../../../src/ffi/socket/unix.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-notify-"));
afterAll(() => rmSync(directory, { recursive: true }));

function tell(variables: Record<string, string>, state: Parameters<typeof tellManager>[0] = "READY=1"): boolean {
  takeEnvironment(utf8(Object.entries(variables).map((pair) => `${pair.join("=")}\0`).join("")));
  return tellManager(state);
}

test.each([
  ["a path", (name: string) => ({ bound: join(directory, name), told: join(directory, name) })],
  ["a name in no directory", (name: string) => ({ bound: `\0patchbay-${name}`, told: `@patchbay-${name}` })],
])("a manager at %s hears every state once, and nothing stays open", (_what, at) => {
  const { bound, told } = at(`${process.pid}`), address = unixAddress(bound), room = new Uint8Array(100);
  const fd = openSocket("socket", AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK);
  expect(libc.bind(fd, address, address.length)).toBe(0);
  const hear = () => fromUtf8(room.subarray(0, Math.max(0, receiveMessage(fd, room))));
  const before = readdirSync("/proc/self/fd");
  for (const state of ["READY=1", "STOPPING=1"] as const) {
    expect([tell({ NOTIFY_SOCKET: told }, state), hear(), hear()]).toEqual([true, state, ""]);
  }
  expect(readdirSync("/proc/self/fd")).toEqual(before);
  closeFile(fd);
});

test.each<Record<string, string>>([{}, { NOTIFY_SOCKET: "" }, { NOTIFY_SOCKET: "vsock:2:1234" }])(
  "with %j nobody wants to know",
  (variables) => {
    expect(tell(variables)).toBe(false);
  },
);
