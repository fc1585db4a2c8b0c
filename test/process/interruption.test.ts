/** SIGINT and SIGTERM as an error of the work that they interrupt: in processes that are started with them blocked. */
import { expect, test } from "bun:test";

const ffi = `${import.meta.dir}/../../src/ffi`;

/** What the script prints, and how its process ends. */
function run(body: string, blocked = "INT,TERM") {
  const script = `
    import * as interruption from "${ffi}/../process/interruption.ts";
    import { sendSignal, SIGINT, SIGTERM } from "${ffi}/signals.ts";
    import { poll, POLLIN } from "${ffi}/poll.ts";
    import { openPipe } from "${ffi}/spawn.ts";
    import { writeAll } from "${ffi}/files.ts";
    const told = (work) => { try { return work() ?? null } catch (error) { return error.message } };
    const come = (signal) => sendSignal(process.pid, signal);
    const isReadable = (fd) => poll([{ fd, events: POLLIN }], 0).size > 0;
    const say = (...values) => console.log(JSON.stringify(values));
    ${body}`;
  const before = blocked === "" ? [] : ["env", `--block-signal=${blocked}`];
  const { stdout, stderr, exitCode, signalCode } = Bun.spawnSync([...before, process.execPath, "-e", script]);
  const said = stdout.toString().trim().split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  return { said, stderr: stderr.toString(), ending: signalCode ?? exitCode };
}

const done = { stderr: "", ending: 0 };

test("the first signal interrupts the work once; what follows takes back", () => {
  const body = `
    const { throwIfInterrupted, interruptionDescriptor, signalDescriptor, areInterruptionsTaken } = interruption;
    interruption.takeInterruptions();
    const fd = interruptionDescriptor();
    say(areInterruptionsTaken(), fd === signalDescriptor(), isReadable(fd), told(throwIfInterrupted));
    come(SIGTERM);
    say(isReadable(fd), interruption.interruptedBy() ?? null, told(throwIfInterrupted), interruption.interruptedBy());
    come(SIGINT);
    say(isReadable(fd), told(throwIfInterrupted), interruption.interruptedBy(), interruptionDescriptor());
    say(signalDescriptor() === fd, areInterruptionsTaken());`;
  expect(run(body)).toEqual({
    ...done,
    said: [
      [true, true, false, null],
      [true, null, "interrupted by SIGTERM", 15],
      [true, null, 15, -1],
      [true, true],
    ],
  });
});

test("each is called by its name, and only those that were blocked are taken", () => {
  const body = (signal: string) => `
    interruption.takeInterruptions();
    come(${signal});
    say(told(interruption.throwIfInterrupted));`;
  expect(run(body("SIGINT"))).toEqual({ ...done, said: [["interrupted by SIGINT"]] });
  expect(run(body("SIGINT"), "INT")).toEqual({ ...done, said: [["interrupted by SIGINT"]] });
  expect(run(body("SIGTERM"), "INT")).toEqual({ ...done, said: [], ending: "SIGTERM" });
});

test("where nobody takes them, nothing is interrupted, and nothing waits", () => {
  const body = `
    const { areInterruptionsTaken, awaitReady, throwIfInterrupted, interruptionDescriptor, signalDescriptor } = interruption;
    const state = () => [areInterruptionsTaken(), interruptionDescriptor(), signalDescriptor(), told(throwIfInterrupted)];
    const [readEnd] = openPipe();
    say(...state(), told(() => awaitReady(readEnd, POLLIN)));
    interruption.takeInterruptions();
    say(...state(), told(() => awaitReady(readEnd, POLLIN)));`;
  const nothing = [false, -1, -1, null, null];
  expect(run(body, "")).toEqual({ ...done, said: [nothing, nothing] });
});

test("waiting ends when there is something to read, or with the interruption", () => {
  const body = `
    interruption.takeInterruptions();
    const [readEnd, writeEnd] = openPipe(), wait = () => interruption.awaitReady(readEnd, POLLIN);
    writeAll(writeEnd, new Uint8Array(1));
    say(told(wait));
    const [empty] = openPipe();
    come(SIGINT);
    say(told(() => interruption.awaitReady(empty, POLLIN)));
    // What is taken back waits for nothing that could interrupt it.
    say(told(() => interruption.awaitReady(empty, POLLIN)));`;
  expect(run(body)).toEqual({ ...done, said: [[null], ["interrupted by SIGINT"], [null]] });
});

const ends = `const ends = (isInterruptible) => interruption.endsProgram("/bin/plugin", isInterruptible);`;
const warning = "patchbay: waiting for /bin/plugin, which one more signal ends\n";

test("a program that may be interrupted ends with the first signal, others with the third", () => {
  const interrupted = `
    ${ends}
    interruption.takeInterruptions();
    say(ends(true));
    come(SIGINT);
    say(ends(true), told(interruption.throwIfInterrupted));`;
  expect(run(interrupted)).toEqual({ ...done, said: [[false], [true, "interrupted by SIGINT"]] });
  const others = `
    ${ends}
    interruption.takeInterruptions();
    const all = [ends(false)];
    for (const signal of [SIGINT, SIGTERM, SIGINT]) {
      come(signal);
      all.push(ends(false), ends(false));
    }
    say(...all);
    say(told(interruption.throwIfInterrupted));`;
  expect(run(others)).toEqual({
    ending: 0,
    stderr: warning,
    said: [[false, false, false, false, false, true, false], ["interrupted by SIGINT"]],
  });
});

test("while it is taken back, the first signal says that the next one ends the program", () => {
  const body = `
    ${ends}
    interruption.takeInterruptions();
    interruption.ignoreInterruptions();
    come(SIGTERM);
    say(told(interruption.throwIfInterrupted), ends(true), interruption.interruptedBy() ?? null);
    come(SIGTERM);
    say(ends(true));`;
  expect(run(body)).toEqual({ ending: 0, stderr: warning, said: [[null, false, null], [true]] });
});

test("a process that takes nothing back ends as always", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const body = `
      come(${signal});
      say("blocked");
      interruption.releaseInterruptions();
      poll([], 60_000);`;
    expect(run(body)).toEqual({ stderr: "", said: [["blocked"]], ending: signal });
  }
});
