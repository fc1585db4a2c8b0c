/** A process that is known by its descriptor is not mistaken for a later one with its number. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { needs } from "../support/needs.ts";

needs("root");

/** In a process namespace of its own, where the kernel is told which number comes next. */
const script = `
  import { readFileSync, writeFileSync } from "node:fs";
  import { OtherProcess } from ${JSON.stringify(resolve(import.meta.dir, "../../src/ffi/other-process.ts"))};
  const start = () => Bun.spawn(["sleep", "600"]);
  const first = start(), known = OtherProcess.open(first.pid);
  const before = [known.hasEnded, known.signal(0)];
  first.kill("SIGKILL");
  await first.exited;
  let second;
  do {
    second?.kill("SIGKILL");
    await second?.exited;
    writeFileSync("/proc/sys/kernel/ns_last_pid", String(first.pid - 1));
    second = start();
  } while (second.pid !== first.pid);
  const after = [known.hasEnded, known.endsWithin(1000), known.signal(9)];
  const [, state] = /^State:\\t(\\S)/m.exec(readFileSync("/proc/" + second.pid + "/status", "utf8"));
  const other = OtherProcess.open(second.pid);
  known.close();
  console.log(JSON.stringify({ before, after, isAlive: state !== "Z", other: [other.hasEnded, other.signal(9)] }));
  await second.exited;
  console.log(JSON.stringify({ other: other.endsWithin(1000), none: OtherProcess.open(second.pid) === undefined }));
`;

test("a number that another process has got since: the other is neither signalled nor waited for", async () => {
  const child = Bun.spawn(
    ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", process.execPath, "-e", script],
    { stdout: "pipe", stderr: "inherit" },
  );
  const lines = (await child.stdout.text()).trim().split("\n").map((line) => JSON.parse(line));
  expect(lines).toEqual([
    { before: [false, true], after: [true, true, false], isAlive: true, other: [false, true] },
    { other: true, none: true },
  ]);
});
