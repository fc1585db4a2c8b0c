/**
 * What the plugin makes of another process that listens where the service should. The other side is a process that says
 * what it is told.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { ask, Failed, NoAnswer, NoService } from "../../../src/services/dhcp/ask.ts";
import { LONGEST_LINE } from "../../../src/services/dhcp/service-protocol.ts";
import { EAGAIN, ECONNRESET, EPIPE } from "../../../src/ffi/errno.ts";
import * as interruption from "../../../src/process/interruption.ts";
import { withOwnPatience } from "../../../src/process/patience.ts";
import * as libc from "../../../src/ffi/libc.ts";
import * as messages from "../../../src/ffi/socket/message.ts";
import * as peer from "../../../src/ffi/socket/peer.ts";

/** It answers with the pieces that the request has for it, one after the other, and ends; without any it is silent. */
const program = `
  Bun.listen({ unix: process.argv[1], socket: { async data(socket, bytes) {
    socket.data = (socket.data ?? "") + bytes;
    if (!socket.data.endsWith("\\n")) return;
    const { network: pieces } = JSON.parse(socket.data);
    for (const piece of pieces) {
      socket.write(piece);
      await Bun.sleep(5);
    }
    if (pieces.length > 0) socket.end();
  } } });
  // One that says no before anybody has asked.
  Bun.listen({ unix: process.argv[2], socket: {
    open: (socket) => void socket.end('{"version":1,"failure":"not you","hint":"go away"}\\n'),
    data() {},
  } });
  console.log("listens");
`;

const directory = mkdtempSync(join(tmpdir(), "patchbay-ask-"));
const [path, refusing] = ["socket", "refusing"].map((name) => join(directory, name)) as [string, string];
let listener: Bun.Subprocess<"ignore", "pipe", "inherit">;

beforeAll(async () => {
  listener = Bun.spawn([process.execPath, "-e", program, path, refusing], { stdout: "pipe" });
  await listener.stdout.getReader().read();
});
afterAll(async () => {
  listener.kill();
  await listener.exited;
  rmSync(directory, { recursive: true });
});

const PATIENCE_MS = 30_000;
const told = (pieces: string[], patienceMs = PATIENCE_MS) =>
  withOwnPatience(() => ask(path, { do: "report", network: pieces as unknown as string }, patienceMs));

/** The error, with what to do. */
function failure(work: () => unknown): { kind: unknown; message: string; hint?: string } {
  try {
    work();
  } catch (error) {
    const { constructor: kind, message, hint } = error as Failed;
    return { kind, message, hint };
  }
  throw new Error("it has not failed");
}

test("an answer is read to the end of its line, in however many pieces it comes", () => {
  const report = { version: 1, report: { unanswered: 2 } }, text = `${JSON.stringify(report)}\n`;
  expect(told([text])).toEqual(report);
  expect(told([text.slice(0, 7), text.slice(7, 20), text.slice(20)])).toEqual(report);
  // What ends without a line is as good.
  expect(told([text.trim()])).toEqual(report);
});

test("a service that says no is believed, also when it does so before it is asked", () => {
  expect(failure(() => told(['{"version":1,"failure":"no lease","hint":"wait"}\n']))).toEqual({
    kind: Failed,
    message: "no lease",
    hint: "wait",
  });
  expect(failure(() => told(['{"version":1,"failure":"no lease"}\n'])).hint).toBe("");
  expect(failure(() => ask(refusing, { do: "report", network: "" }, PATIENCE_MS))).toEqual({
    kind: Failed,
    message: "not you",
    hint: "go away",
  });
});

test.each<[what: string, pieces: string[], kind: unknown, message: string, hint: string]>([
  [
    "ends",
    [""],
    NoAnswer,
    `the DHCP service at ${path} ended before it answered`,
    "look at its log",
  ],
  [
    "speaks HTTP",
    ["HTTP/1.1 400 Bad Request\r\n\r\n"],
    NoAnswer,
    `a DHCP daemon of another make listens on ${path}`,
    'stop it, and start "patchbay dhcp" instead',
  ],
  [
    "speaks HTTP/2",
    ["\0\0\x12\x04"],
    NoAnswer,
    `a DHCP daemon of another make listens on ${path}`,
    'stop it, and start "patchbay dhcp" instead',
  ],
  [
    "is of another version",
    ['{"version":2}\n'],
    Failed,
    `the DHCP service at ${path} is of another version`,
    "restart it",
  ],
  [
    "says nothing of ours",
    ['{"version":1,"report":5}\n'],
    NoAnswer,
    `what listens on ${path} is no DHCP service of ours: report of the answer is wrong`,
    'end it, and start "patchbay dhcp"',
  ],
])("who %s", (_what, pieces, kind, message, hint) => {
  expect(failure(() => told(pieces))).toEqual({ kind, message, hint });
});

test("who says nothing is not waited for without end", () => {
  expect(failure(() => told([], 30))).toEqual({
    kind: Failed,
    message: `the DHCP service at ${path} does not answer`,
    hint: "look at its log",
  });
});

test("a place where nobody listens has no service", () => {
  const nowhere = join(directory, "nowhere");
  expect(failure(() => ask(nowhere, { do: "report", network: "" }, 1000))).toMatchObject({
    kind: NoService,
    message: `error dialing DHCP daemon: dial unix ${nowhere}: connect: no such file or directory`,
  });
  const tooLong = join(directory, "x".repeat(200));
  expect(failure(() => ask(tooLong, { do: "report", network: "" }, 1000)).kind).not.toBe(NoService);
});

test("a request of more than a line's length is not sent", () => {
  const answer = '{"version":1}\n', line = { version: 1, do: "report", network: [answer, ""] };
  const room = LONGEST_LINE - `${JSON.stringify(line)}\n`.length;
  // Both may be read at once.
  expect(told([answer, " ".repeat(room)])).toEqual({ version: 1 });
  expect(failure(() => told([answer, " ".repeat(room + 1)]))).toMatchObject({
    kind: Failed,
    message: "the request is longer than 65536 bytes",
  });
});

test.each([
  [0, 1000, undefined],
  [1000, 1000, undefined],
  [1001, 1000, 'end it, and start "patchbay dhcp"'],
  [65534, 1000, "call the plugin where the service was started, or start a service of its own here"],
])("user %i listens, user %i calls: %p", (uid, own, hint) => {
  using _listener = spyOn(peer, "peerOf").mockImplementation(() => ({ pid: 7, uid }));
  using _own = spyOn(process as { geteuid(): number }, "geteuid").mockImplementation(() => own);
  const answer = () => told(['{"version":1}\n']);
  if (hint === undefined) return expect(answer()).toEqual({ version: 1 });
  const found = failure(answer);
  expect(found).toMatchObject({ kind: NoAnswer, hint });
  expect(found.message).toStartWith(`process 7 of user ${uid} listens on ${path}, and only root or this user may`);
});

test("whoever answers each question just before its limit is asked no more when a verb has waited for so long", () => {
  let now = 0, answered = 0;
  const send = messages.sendMessage;
  using _clock = spyOn(performance, "now").mockImplementation(() => now);
  using _sending = spyOn(messages, "sendMessage").mockImplementation((...message) => {
    answered++;
    now += PATIENCE_MS - 1;
    return send(...message);
  });
  const question = { do: "report", network: ['{"version":1}\n'] as unknown as string } as const;
  withOwnPatience(() => {
    expect(ask(path, question, PATIENCE_MS)).toEqual({ version: 1 });
    for (const _ of [2, 3, 4]) {
      expect(failure(() => ask(path, question, PATIENCE_MS)).message).toContain("does not answer");
    }
    expect(answered).toBe(2);
  });
  expect(withOwnPatience(() => ask(path, question, PATIENCE_MS))).toEqual({ version: 1 });
});

test("the container's namespace goes along, only ADD is interrupted, and nothing stays open", () => {
  const sent: (readonly number[] | undefined)[] = [], open = () => readdirSync("/proc/self/fd").length;
  const send = messages.sendMessage;
  using _sending = spyOn(messages, "sendMessage").mockImplementation((fd, bytes, descriptors) => {
    sent.push(descriptors);
    return send(fd, bytes, []);
  });
  using interrupting = spyOn(interruption, "interruptionDescriptor");
  const before = open(), pieces = ['{"version":1}\n'] as unknown as string;
  ask(path, { do: "report", network: pieces }, PATIENCE_MS);
  expect(interrupting).not.toHaveBeenCalled();
  ask(path, { do: "acquire", network: pieces } as never, PATIENCE_MS, 77);
  expect(interrupting).toHaveBeenCalled();
  expect(failure(() => told([], 10)).kind).toBe(Failed);
  expect([sent, open()]).toEqual([[[], [77], []], before]);
});

test.each([
  ["a part of it", 5, 0, "does not take the request"],
  ["nothing, because nobody reads", -1, EAGAIN, "does not take the request"],
  ["nothing, because the other end has closed: that may have said why", -1, EPIPE, "not you"],
  ["nothing, because the other end has left it unread", -1, ECONNRESET, "not you"],
])("of a request the kernel takes %s", (_what, sent, errno, text) => {
  using _sending = spyOn(messages, "sendMessage").mockImplementation(() => sent);
  using _errno = spyOn(libc, "lastErrno").mockImplementation(() => errno);
  expect(failure(() => ask(refusing, { do: "report", network: "" }, PATIENCE_MS)).message).toContain(text);
});
