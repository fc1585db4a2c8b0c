/** The clients of the service, at a socket of the kernel's: what they may send, how long they may take, and what stays open. */
import { closeSync, fstatSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { EMFILE, SyscallError } from "../../../../src/ffi/errno.ts";
import { closeFile } from "../../../../src/ffi/files.ts";
import { fromUtf8, utf8 } from "../../../../src/ffi/libc.ts";
import { setNonblocking } from "../../../../src/ffi/descriptors.ts";
import * as messages from "../../../../src/ffi/socket/message.ts";
import * as sockets from "../../../../src/ffi/socket/unix.ts";
import * as terminal from "../../../../src/ffi/terminal.ts";
import { receiveMessage, sendMessage } from "../../../../src/ffi/socket/message.ts";
import { connectTo, listenAt } from "../../../../src/ffi/socket/unix.ts";
import { LONGEST_LINE, type ServiceRequest } from "../../../../src/services/dhcp/service-protocol.ts";
import * as admission from "../../../../src/services/dhcp/service/admission.ts";
import { type Client, Clients } from "../../../../src/services/dhcp/service/clients.ts";

const request: ServiceRequest = { do: "report", network: "net" },
  line = `${JSON.stringify({ version: 1, ...request })}\n`;
const answer = { version: 1, report: { unanswered: 3 } };

let directory: string, path: string, listening: number, clients: Clients;
/** What the service is asked, and by whom. */
let asked: { request: ServiceRequest; client: Client; netns: number | undefined }[];
let whyRefused: ReturnType<typeof spyOn<typeof admission, "whyRefused">>;
const ends: number[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-clients-"));
  path = join(directory, "socket");
  listening = listenAt(path);
  asked = [];
  clients = new Clients(listening, (request, client, netns) => void asked.push({ request, client, netns }));
  whyRefused = spyOn(admission, "whyRefused").mockImplementation(() => undefined);
});
afterEach(() => {
  whyRefused.mockRestore();
  for (const fd of ends.splice(0)) closeFile(fd);
  clients.wake(new Set(clients.fds), 1e9);
  closeFile(listening);
  rmSync(directory, { recursive: true });
});

function connect(): number {
  const fd = connectTo(path);
  setNonblocking(fd);
  ends.push(fd);
  return fd;
}

const say = (fd: number, text: string, descriptors: number[] = []) => sendMessage(fd, utf8(text), descriptors);
const turn = (now = 0) => clients.wake(new Set(clients.fds), now);
const openFiles = () => readdirSync("/proc/self/fd").length;

/** What has arrived; undefined while nothing has, "" at the end. */
function heard(fd: number): string | undefined {
  const buffer = new Uint8Array(4096), length = receiveMessage(fd, buffer);
  return length < 0 ? undefined : fromUtf8(buffer.subarray(0, length));
}

function leave(fd: number): void {
  closeFile(fd);
  ends.splice(ends.indexOf(fd), 1);
}

test("a request is read in pieces, and answered with one line", () => {
  const before = openFiles(), fd = connect();
  expect([clients.areConnected, clients.fds]).toEqual([false, [listening]]);
  turn();
  expect([clients.areConnected, clients.fds.length]).toEqual([true, 2]);
  for (const piece of [line.slice(0, 5), line.slice(5, -1)]) {
    say(fd, piece);
    turn();
    expect(asked).toEqual([]);
  }
  say(fd, "\n");
  turn();
  expect(asked.map((one) => [one.request, one.netns])).toEqual([[JSON.parse(line), undefined]]);
  expect(heard(fd)).toBeUndefined();
  asked[0]!.client.answer(answer);
  expect([heard(fd), heard(fd), clients.areConnected]).toEqual([`${JSON.stringify(answer)}\n`, "", false]);
  asked[0]!.client.answer(answer);
  leave(fd);
  expect(openFiles()).toBe(before);
});

test("the descriptor that comes with a request is the service's; others are closed", () => {
  const file = openSync("/dev/null", "r"), before = openFiles(), fd = connect();
  turn();
  say(fd, line.slice(0, 5), [file]);
  turn();
  expect(openFiles()).toBe(before + 3);
  say(fd, line.slice(5), [file]);
  turn();
  expect(openFiles()).toBe(before + 3);
  const netns = asked[0]!.netns!;
  expect(fstatSync(netns).rdev).toBe(fstatSync(file).rdev);
  asked[0]!.client.answer(answer);
  leave(fd);
  expect(openFiles()).toBe(before + 1);
  closeSync(netns);
  // The descriptor of a client that goes without having asked is closed.
  const other = connect();
  turn();
  say(other, line.slice(0, 5), [file]);
  turn();
  leave(other);
  turn();
  expect([openFiles(), clients.areConnected]).toEqual([before, false]);
  closeSync(file);
});

test.each([
  ["no JSON", "{\n", /^\{"version":1,"failure":"[^"]*request/],
  ["another version", '{"version":2}\n', /"failure":"the plugin speaks version 2, the service 1","hint":"restart/],
  ["empty", "\n", /^\{"version":1,"failure":"[^"]*request/],
  [
    "no request",
    '{"version":1,"do":"dance"}\n',
    /"failure":"malformed request: nobody knows how to do \\"dance\\""\}/,
  ],
  ["Go's", "CONNECT /_goRPC_ HTTP/1.0\n", /^HTTP\/1.0 501 this is Patchbay's DHCP service/],
])("a line that is %s is answered", (_what, text, expected) => {
  const fd = connect();
  turn();
  say(fd, text);
  turn();
  expect(heard(fd)).toMatch(expected);
  expect([heard(fd), asked]).toEqual(["", []]);
});

test("a service that throws answers with the reason", () => {
  const failing = new Clients(listening, () => {
    throw new Error("out of memory");
  });
  const fd = connect();
  failing.wake(new Set(failing.fds), 0);
  say(fd, line);
  failing.wake(new Set(failing.fds), 0);
  expect(heard(fd)).toBe('{"version":1,"failure":"out of memory"}\n');
});

test("a line has an end", () => {
  const fd = connect(), most = "x".repeat(LONGEST_LINE);
  turn();
  say(fd, most);
  turn();
  expect(heard(fd)).toBeUndefined();
  say(fd, "x");
  turn();
  expect(heard(fd)).toBe('{"version":1,"failure":"the request is longer than 65536 bytes"}\n');
});

test("who goes away before there is an answer is told of once; who talks on is sent away", () => {
  let gone = 0;
  const fd = connect();
  turn();
  say(fd, line);
  turn();
  asked[0]!.client.onGone = () => gone++;
  turn();
  expect(gone).toBe(0);
  say(fd, line);
  turn();
  expect([gone, heard(fd), asked.length, clients.areConnected]).toEqual([1, "", 1, false]);
  const other = connect();
  turn();
  say(other, line);
  turn();
  asked[1]!.client.onGone = () => gone++;
  leave(other);
  turn();
  expect([gone, clients.areConnected]).toEqual([2, false]);
  asked[1]!.client.answer(answer);
  const third = connect();
  turn();
  say(third, line);
  turn();
  asked[2]!.client.onGone = () => gone++;
  asked[2]!.client.answer(answer);
  turn();
  expect(gone).toBe(2);
});

test("a client has ten seconds to say what it wants, and its answer takes as long as it takes", () => {
  const silent = connect(), fd = connect();
  turn(5);
  expect(clients.due).toBe(15);
  say(fd, line);
  turn(14.9);
  expect([heard(silent), clients.due]).toEqual([undefined, 15]);
  turn(15);
  expect([heard(silent), heard(fd), clients.due]).toEqual(["", undefined, Infinity]);
  turn(1e6);
  expect(heard(fd)).toBeUndefined();
});

test("who is refused is told why and what to do, and has no place", () => {
  whyRefused.mockImplementation(() => ({ text: "not you", hint: "go away" }));
  const fd = connect(), before = openFiles();
  turn();
  expect([heard(fd), heard(fd), clients.areConnected, asked, openFiles()]).toEqual([
    '{"version":1,"failure":"not you","hint":"go away"}\n',
    "",
    false,
    [],
    before,
  ]);
});

test("sixteen are accepted in one go, then others have their turn", () => {
  for (let count = 0; count < 20; count++) connect();
  turn();
  expect(clients.fds.length).toBe(1 + 16);
  turn();
  expect(clients.fds.length).toBe(1 + 20);
});

test("where there is no room for a look at a client, nobody new is accepted for a second, and it is not lost", () => {
  const fd = connect();
  whyRefused.mockImplementation(() => {
    throw new SyscallError("openat", EMFILE);
  });
  turn(5);
  expect([clients.fds, clients.due, clients.areConnected]).toEqual([[], 6, false]);
  whyRefused.mockImplementation(() => undefined);
  clients.wake(new Set(), 5.9);
  expect([clients.due, clients.areConnected]).toEqual([6, false]);
  clients.wake(new Set(), 6);
  expect([clients.fds.length, clients.due]).toEqual([2, 16]);
  say(fd, line);
  turn(7);
  expect(asked.length).toBe(1);
});

test("a connection that makes trouble is closed and told of, and the others are served", () => {
  const one = connect(), other = connect(), said: string[] = [];
  turn();
  say(other, line);
  using _defect = spyOn(messages, "receiveWithDescriptors").mockImplementationOnce(() => {
    throw new Error("a defect");
  });
  using _line = spyOn(terminal, "printToStderr").mockImplementation((text) => void said.push(text));
  turn();
  expect([heard(one), asked.length]).toEqual(["", 1]);
  expect(said).toEqual([expect.stringMatching(/^while a request was served: Error: a defect/)]);
});

test("512 are served at a time; others wait in the kernel", () => {
  let next = 1_000_000;
  using _accepting = spyOn(sockets, "acceptNext").mockImplementation(() => next++);
  const many = new Clients(listening, () => {});
  for (let count = 0; count < 33; count++) many.wake(new Set([listening]), 0);
  expect([many.fds.length, many.fds.includes(listening), next]).toEqual([512, false, 1_000_512]);
});
