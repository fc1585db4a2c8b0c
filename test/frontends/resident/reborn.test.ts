/**
 * A process that connects, or listens, and has ended when somebody looks at it. Its number is another's by then, of a
 * process that may do everything: nobody takes the one for the other.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { untilListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { openStage, type Stage } from "../../support/reborn.ts";
import { childrenOf, SOCKET } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";
import { talking } from "../../support/talking.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const [READY, DECLINED, PROVE] = [1, 2, 5];
const ANSWERS = "/run/answers";

/** Writes down what it is told, and says who it is when it is asked. */
const goOn = () => `
  ${talking()}
  import { appendFileSync } from "node:fs";
  for (;;) {
    const answer = hear(3)[0];
    if (answer === undefined) break;
    appendFileSync("${ANSWERS}", answer + "\\n");
    if (answer === ${PROVE}) send(3, version);
  }
  appendFileSync("${ANSWERS}", "end\\n");
`;

async function answersIn(stage: Stage): Promise<number[]> {
  const look = async () => (await stage.run(["cat", ANSWERS])).stdout;
  return (await untilTrue(look, (text) => text.includes("end"))).split("\n").slice(0, -2).map(Number);
}

/** What an older kernel does not know of a connection, the worker asks the caller. */
async function withoutPidfds(machine: Machine, worker: number): Promise<void> {
  const inject = "inject=getsockopt:error=ENOPROTOOPT:when=2";
  machine.start(["strace", "-qq", "-o", "/dev/null", "-e", "trace=getsockopt", "-e", inject, "-p", String(worker)]);
  await untilTrue(() => readFileSync(`/proc/${worker}/status`, "utf8"), (text) => /TracerPid:\t[1-9]/.test(text));
}

const UNLIKE = ["setpriv", "--bounding-set=-net_admin"];

const isNew = lacks("no hold on who has connected");

test.skipIf(!isNew)("a resident takes no later process for a caller that has ended", () => showItsCallers("held"));
test("a resident to which the kernel seems older takes no later process for a caller that has ended", () =>
  showItsCallers("injected"));
test.skipIf(isNew)(
  "a resident on an older kernel takes no later process for a caller that has ended",
  () => showItsCallers("older"),
);

async function showItsCallers(kernel: "held" | "injected" | "older"): Promise<void> {
  await using machine = await openMachine();
  await using stage = await openStage(machine);
  const resident = stage.start([PATCHBAY, "serve", "--workers=1", "--rehearsals=0"]);
  const isServing = async () => (await stage.run([PATCHBAY, "serve", "--status"])).code;
  await untilTrue(isServing, (code) => code === 0);
  const [worker] = childrenOf(await stage.pidOf(resident));
  if (kernel === "injected") await withoutPidfds(machine, worker!);

  // A process that has not ended is served, or not, by what it is itself.
  const connect = `const fd = open(); send(fd, version);`, call = `${talking()} ${connect}`;
  const asked: number[] = kernel === "held" ? [] : [PROVE];
  for (const [as, answer] of [[[], READY], [UNLIKE, DECLINED], [["setpriv", "--no-new-privs"], DECLINED]] as const) {
    // A worker does not wait long for what a launcher has ready: on a busy machine this one is too late, and asks again.
    const words = [
      ...as,
      process.execPath,
      "-e",
      `${talking()}
      for (let answers = [], isLate = true; isLate;) {
        ${connect}
        answers = [hear(fd)[0]];
        if (answers[0] === ${PROVE}) { send(fd, version); answers.push(hear(fd)[0]); }
        close(fd);
        isLate = answers.includes(undefined) || (${answer} === ${READY} && answers.at(-1) === ${DECLINED});
        if (!isLate) console.log(answers.join(" "));
      }`,
    ];
    expect([as, await stage.run(words)]).toEqual([as, {
      code: 0,
      stdout: `${[...asked, answer].join(" ")}\n`,
      stderr: "",
    }]);
  }

  // A caller that goes on may be too late, too: then the worker has asked, and heard nothing.
  let answers = asked;
  for (let attempt = 0; attempt < 20 && answers.length === asked.length; attempt++) {
    await stage.run(["rm", "-f", ANSWERS]);
    process.kill(worker!, "SIGSTOP");
    await stage.handOver(call, goOn(), UNLIKE);
    process.kill(worker!, "SIGCONT");
    answers = await answersIn(stage);
  }
  expect(answers).toEqual([...asked, DECLINED]);
}

test("the DHCP service takes no later process for one that asked and has ended", async () => {
  await using machine = await openMachine();
  await using stage = await openStage(machine);
  const socket = "/run/dhcp.sock";
  const words = [`${patchbayPlugins()}/dhcp`, "daemon", "-socketpath", socket, "-datadir", "/run/leases"];
  const service = await stage.pidOf(stage.start(words));
  const connect = `
    import { sendMessage } from "${import.meta.dir}/../../../src/ffi/socket/message.ts";
    import { connectTo } from "${import.meta.dir}/../../../src/ffi/socket/unix.ts";
    const fd = connectTo("${socket}");
    sendMessage(fd, new TextEncoder().encode('{"version":1,"do":"report","network":"net"}\\n'));
  `;
  const hear = (fd: string) => `
    import { receiveMessage } from "${import.meta.dir}/../../../src/ffi/socket/message.ts";
    import { writeFileSync } from "node:fs";
    const bytes = new Uint8Array(65536);
    let text = "";
    for (let length; (length = receiveMessage(${fd}, bytes)) > 0;) {
      text += new TextDecoder().decode(bytes.subarray(0, length));
    }
    writeFileSync("${ANSWERS}", text + "end\\n");
  `;
  const answer = async (): Promise<unknown> => {
    const text = await untilTrue(
      async () => (await stage.run(["cat", ANSWERS])).stdout,
      (found) => found.endsWith("end\n"),
    );
    await stage.run(["rm", ANSWERS]);
    return JSON.parse(text.slice(0, -4));
  };
  await untilListening(machine, socket);
  expect(await stage.run([process.execPath, "-e", `${connect} ${hear("fd")}`])).toMatchObject({
    code: 0,
    stderr: "",
  });
  expect(await answer()).toMatchObject({ report: { unanswered: 0 } });
  process.kill(service, "SIGSTOP");
  const number = await stage.handOver(connect, hear("3"), UNLIKE);
  process.kill(service, "SIGCONT");
  // What remains on an older kernel (docs/dhcp.md).
  const expected = isNew ? { failure: expect.stringContaining(`process ${number}`) } : { report: { unanswered: 0 } };
  expect(await answer()).toMatchObject(expected);
});

test("a launcher takes no later process for one that listens and has ended", async () => {
  await using machine = await openMachine();
  await using stage = await openStage(machine);
  await machine.sh("mkdir -m 700 /run/patchbay");
  const listen = `${talking()}
    const { listen } = bind({ listen: { args: ["i32", "i32"], returns: "i32" } });
    const fd = libc.socket(1, 5, 0);
    if (libc.bind(fd, address, address.length) !== 0 || listen(fd, 10) !== 0) throw new Error("listen");`;
  const hearAll = `${talking()}
    import { appendFileSync } from "node:fs";
    const { accept } = bind({ accept: { args: ["i32", "ptr", "ptr"], returns: "i32" } });
    for (;;) {
      const caller = accept(3, null, null), heard = hear(caller);
      appendFileSync("${ANSWERS}", "heard " + heard.length + "\\n");
      close(caller);
    }`;
  const version = async () => {
    expect((await stage.run([PATCHBAY, "version"])).code).toBe(0);
    return await untilTrue(async () => (await stage.run(["cat", ANSWERS])).stdout, (text) => text !== "");
  };
  // In the callers' own namespaces it is heard, and in others not, also when a process of theirs has its number.
  stage.start([
    process.execPath,
    "-e",
    `${listen} const accepting = fd; ${hearAll.replace("accept(3", "accept(fd").replace(talking(), "")}`,
  ]);
  await untilListening(machine, SOCKET);
  expect(await version()).toMatch(/^heard [1-9]/);
  await machine.sh(`rm ${SOCKET} ${ANSWERS}`);
  await stage.handOver(listen, hearAll, ["unshare", "--mount"]);
  // What remains on an older kernel (docs/resident.md).
  expect(await version()).toMatch(isNew ? /^heard 0\n$/ : /^heard [1-9]/);
});
