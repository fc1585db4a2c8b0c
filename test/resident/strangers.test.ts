/**
 * Something else than a resident is at the socket's path, or a resident that misbehaves: the call runs by itself, with the
 * same answer, and nothing is left of it.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { environmentOf, patchbayPlugins } from "../support/plugins.ts";
import { SOCKET } from "../support/resident.ts";

// What is at the path is what each of these tests is about.
delete process.env.PATCHBAY_TEST_RESIDENT;

const DIRECTORY = "/run/patchbay";
const HEARD = "/run/heard";
const conf = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

/** Answers each caller with these messages when it has asked. */
const listener = `
  import { appendFileSync } from "node:fs";
  import { bind, libc } from "${import.meta.dir}/../../src/ffi/libc.ts";
  const extra = bind({
    listen: { args: ["i32", "i32"], returns: "i32" },
    accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    setuid: { args: ["u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i64_fast" },
  });
  const { answers, closes, user, backlog, fills, type } = JSON.parse(process.argv[1]);
  const address = new Uint8Array([1, 0, ...new TextEncoder().encode("${SOCKET}"), 0]);
  const fd = libc.socket(1, type, 0);
  if (libc.bind(fd, address, address.length) !== 0) throw new Error("bind");
  if (user !== 0) extra.setuid(user);
  if (extra.listen(fd, backlog) !== 0) throw new Error("listen");
  while (fills && extra.connect(libc.socket(1, type | 0o4000, 0), address, address.length) === 0);
  console.log("listens");
  while (fills) Bun.sleepSync(1000);
  const heard = new Uint8Array(200000);
  for (;;) {
    const caller = extra.accept(fd, null, null);
    const length = Number(extra.recv(caller, heard, heard.length, 0));
    if (length > 0) appendFileSync("${HEARD}", heard.subarray(0, length));
    for (const answer of answers) {
      const bytes = new Uint8Array(answer);
      libc.sendto(caller, bytes, bytes.length, 0x4000, null, 0);
    }
    if (closes) libc.close(caller);
  }
`;

const [READY, DECLINED, DONE, DONE_IN_FILES] = [1, 2, 3, 4];
const answer = (...numbers: number[]) => [...new Uint8Array(Uint32Array.from(numbers).buffer)];
const ready = answer(READY, 0, 0, 0), text = [...new TextEncoder().encode('{"cniVersion":"1.1.0"}')];
const done = (stdout: number, stderr: number) => [...answer(DONE, 0, stdout, stderr), ...text];
const SEQPACKET = 5, STREAM = 1, NOBODY = 65534;

interface Stranger {
  name: string;
  answers?: number[][];
  closes?: boolean;
  user?: number;
  backlog?: number;
  fills?: boolean;
  type?: number;
}

const strangers: Stranger[] = [
  { name: "a socket whose queue is full", backlog: 0, fills: true },
  { name: "a socket of another type", type: STREAM },
  { name: "who accepts and never answers" },
  { name: "who closes at once", closes: true },
  { name: "who answers rubbish", answers: [[1, 2, 3]] },
  { name: "who answers a word that is none", answers: [answer(77, 0, 0, 0)] },
  { name: "who is done before it was told to begin", answers: [done(text.length, 0)] },
  { name: "who is ready and closes", answers: [ready], closes: true },
  { name: "who is ready and answers rubbish", answers: [ready, [255, 255, 255]] },
  { name: "who is ready and says a word that is none", answers: [ready, answer(77, 0, 0, 0)] },
  { name: "who is ready and is ready again", answers: [ready, ready] },
  { name: "who is ready and declines", answers: [ready, answer(DECLINED, 0, 0, 0)] },
  { name: "whose result is longer than the message", answers: [ready, done(100_000, 0)] },
  { name: "whose result has a length beyond all memory", answers: [ready, done(0xffffffff, 0xffffffff)] },
  { name: "whose lengths are right in 32 bits", answers: [ready, done(text.length + 1, 0xffffffff)] },
  { name: "whose error output is longer than the message", answers: [ready, done(text.length, 1)] },
  { name: "whose result is shorter than the message", answers: [ready, done(3, 0)] },
  { name: "who forgets the files of the result", answers: [ready, answer(DONE_IN_FILES, 0, 0, 0)] },
];

test.each(strangers)("$name: the call runs by itself", async (stranger) => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);
  const { name: _, ...how } = stranger;
  const behaviour = { answers: [], closes: false, user: 0, backlog: 100, fills: false, type: SEQPACKET, ...how };
  await using listening = machine.start([process.execPath, "-e", listener, JSON.stringify(behaviour)]);
  await listening.stdout.getReader().read();
  expect(await machine.sh(`test -S ${SOCKET} && echo is there`)).toBe("is there\n");
  const result = await net.add(container);
  expect(result.ips).toHaveLength(1);
  await net.check(container);
  expect(await machine.sh("ip -br -4 address show eth0", { in: container })).toContain("10.1.0.");
  await net.del(container);
  listening.kill("SIGKILL");
  await listening.exited;
  await machine.sh(`rm ${SOCKET} ${HEARD} 2>/dev/null || true`);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test.each([["ppoll", "ENOMEM"], ["ppoll", "EINTR"], ["recvmsg", "ENOMEM"], ["recvmsg", "EINTR"]])(
  "a call that was begun is waited for, also when %s fails with %s",
  async (syscall, error) => {
    await using machine = await openMachine();
    await machine.sh(`mkdir -m 700 ${DIRECTORY}`);
    const answers = [ready, done(text.length, 0)];
    const behaviour = { answers, closes: false, user: 0, backlog: 100, fills: false, type: SEQPACKET };
    await using listening = machine.start([process.execPath, "-e", listener, JSON.stringify(behaviour)]);
    await listening.stdout.getReader().read();
    const env = environmentOf(patchbayPlugins(), { plugin: "bridge", command: "DEL", conf, containerId: "c" });
    // The second is for the end of the call.
    const inject = ["-e", `inject=${syscall}:error=${error}:when=2`];
    const call = ["strace", "-o", "/run/trace", ...inject, `${patchbayPlugins()}/bridge`];
    const { code, stdout } = await machine.run(call, { env, stdin: JSON.stringify(conf) });
    expect(await machine.sh("cat /run/trace")).toContain("(INJECTED)");
    expect([code, stdout]).toEqual([0, new TextDecoder().decode(Uint8Array.from(text))]);
    listening.kill("SIGKILL");
    await listening.exited;
  },
);

test("another user's listener hears nothing of the environment, the configuration and the descriptors", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await machine.sh(`mkdir -m 700 ${DIRECTORY}; touch ${HEARD}; chmod 666 ${HEARD}`);
  for (const user of [0, NOBODY]) {
    const behaviour = { answers: [ready], closes: true, user, backlog: 100, fills: false, type: SEQPACKET };
    await using listening = machine.start([process.execPath, "-e", listener, JSON.stringify(behaviour)]);
    await listening.stdout.getReader().read();
    await net.add(container);
    await net.del(container);
    listening.kill("SIGKILL");
    await listening.exited;
    const heard = await machine.sh(`tr '\\0' '\\n' <${HEARD}; rm ${SOCKET}; : >${HEARD}`);
    if (user === 0) expect(heard).toContain("CNI_CONTAINERID=ctr-c1");
    else expect(heard).toBe("");
  }
});

test.each([
  ["a file", `echo >${SOCKET}`],
  ["a link to nowhere", `ln -s /nowhere ${SOCKET}`],
  ["a link to itself", `ln -s ${SOCKET} ${SOCKET}`],
  ["a directory", `mkdir ${SOCKET}`],
  ["a pipe", `mkfifo ${SOCKET}`],
  ["a device", `mknod ${SOCKET} c 1 5`],
])("%s in the socket's place: the call runs by itself", async (_, script) => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);
  await machine.sh(script);
  expect((await net.add(container)).ips).toHaveLength(1);
  await net.del(container);
  await machine.sh(`rm -d ${SOCKET}`);
  expect(await leftSince(moment, machine)).toEqual([]);
});
