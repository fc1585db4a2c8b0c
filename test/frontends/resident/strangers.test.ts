/**
 * Something else than a resident is at the socket's path, or a resident that misbehaves: the call runs by itself, with the
 * same answer, and nothing is left of it.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { environmentOf, patchbayPlugins } from "../../support/plugins.ts";
import { SOCKET } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";
import {
  ALTERED,
  answer,
  DECLINED,
  DONE,
  DONE_IN_FILES,
  HEARD,
  makePlace,
  NOT_OURS,
  PROVE,
  READY,
  startStranger,
  type Stranger,
  STREAM,
} from "../../support/stranger.ts";

// What is at the path is what each of these tests is about.
delete process.env.PATCHBAY_TEST_RESIDENT;

const conf = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

const ready = answer(READY, 0, 0, 0), text = [...new TextEncoder().encode('{"cniVersion":"1.1.0"}')];
const done = (stdout: number, stderr: number) => [...answer(DONE, 0, stdout, stderr), ...text];

const strangers: (Stranger & { name: string })[] = [
  { name: "a socket whose queue is full", backlog: 0, fills: true },
  { name: "a socket of another type", type: STREAM },
  { name: "who accepts and never answers" },
  { name: "who closes at once", closes: true },
  { name: "who answers rubbish", answers: [[1, 2, 3]] },
  { name: "who answers an unknown word", answers: [answer(77, 0, 0, 0)] },
  { name: "who is done before it was told to begin", answers: [done(text.length, 0)] },
  { name: "who is ready and closes", answers: [ready], closes: true },
  { name: "who wants a proof and closes", answers: [answer(PROVE, 0, 0, 0)], closes: true },
  { name: "who wants one proof after the other", answers: Array(9).fill(answer(PROVE, 0, 0, 0)) },
  { name: "who is ready and answers rubbish", answers: [ready, [255, 255, 255]] },
  { name: "who is ready and says an unknown word", answers: [ready, answer(77, 0, 0, 0)] },
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
  await net.once(container);
  const moment = await quietMoment(machine);
  const { name: _, ...how } = stranger;
  await using listening = await startStranger(machine, how);
  expect(await machine.sh(`test -S ${SOCKET} && echo is there`)).toBe("is there\n");
  const result = await net.add(container);
  expect(result.ips).toHaveLength(1);
  await net.check(container);
  expect(await machine.sh("ip -br -4 address show eth0", { in: container })).toContain("10.1.0.");
  await net.del(container);
  await listening.end();
  await machine.sh(`rm ${SOCKET} ${HEARD} ${ALTERED} 2>/dev/null || true`);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test.each([["ppoll", "ENOMEM", 3], ["ppoll", "EINTR", 3], ["recvmsg", "ENOMEM", 2], ["recvmsg", "EINTR", 2]])(
  "a call that was begun is waited for, also when %s fails with %s",
  async (syscall, error, last) => {
    await using machine = await openMachine();
    await makePlace(machine);
    // It closes as a resident does: a caller that has heard READY too late waits for that.
    const answers = [ready, done(text.length, 0)];
    await using _listening = await startStranger(machine, { answers, closes: true, hasBoard: true });
    const env = environmentOf(patchbayPlugins(), { plugin: "bridge", command: "DEL", conf, containerId: "c" });
    // The last is for the end of the call; the first ppoll is for the listener itself.
    const inject = ["-e", `inject=${syscall}:error=${error}:when=${last}`];
    const call = ["strace", "-o", "/run/trace", ...inject, `${patchbayPlugins()}/bridge`];
    // On a busy machine it looks for workers first, which makes calls more.
    const { code, stdout, trace } = await untilTrue(async () => {
      const outcome = await machine.run(call, { env, stdin: JSON.stringify(conf) });
      return { ...outcome, trace: await machine.sh("cat /run/trace") };
    }, (said) => !said.trace.includes("serve~board"));
    expect(trace).toContain("(INJECTED)");
    expect([code, stdout]).toEqual([0, new TextDecoder().decode(Uint8Array.from(text))]);
  },
);

test.each([["of our own", [], {}], ...NOT_OURS] as typeof NOT_OURS)(
  "a listener %s: whether it hears of the environment, the configuration and the descriptors",
  async (name, as, stranger) => {
    await using machine = await openMachine();
    const container = await machine.container("c1"), net = network(machine, conf);
    await makePlace(machine);
    await using _listening = await startStranger(machine, { answers: [ready], closes: true, ...stranger }, as);
    await net.once(container);
    const heard = await machine.sh(`tr '\\0' '\\n' <${HEARD}`);
    if (name === "of our own") expect(heard).toContain("CNI_CONTAINERID=ctr-c1");
    else expect(heard).toBe("");
  },
);

test("nobody can change the configuration that he was handed from a pipe", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await makePlace(machine);
  await using _listening = await startStranger(machine, { answers: [ready], closes: true, alters: true });
  const call = { plugin: "bridge", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  for (const command of ["ADD", "DEL"]) {
    const env = { ...environmentOf(patchbayPlugins(), { ...call, command }), TEXT: JSON.stringify(call.conf) };
    const words = ["sh", "-c", `printf %s "$TEXT" | ${patchbayPlugins()}/bridge`];
    expect([command, await machine.run(words, { env })]).toMatchObject([command, { code: 0, stderr: "" }]);
  }
  expect(await machine.sh(`cat ${HEARD} | tr '\\0' '\\n' | grep -c ^CNI_COMMAND; cat ${ALTERED}`)).toBe("2\n");
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
  await net.once(container);
  const moment = await quietMoment(machine);
  await machine.sh(script);
  expect((await net.add(container)).ips).toHaveLength(1);
  await net.del(container);
  await machine.sh(`rm -d ${SOCKET}`);
  expect(await leftSince(moment, machine)).toEqual([]);
});
