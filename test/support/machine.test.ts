/** A machine isolates: nothing gets out of it, and leftover processes are reported. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { openMachine } from "./machine.ts";

test("files and links of a machine are not seen outside", async () => {
  await using machine = await openMachine();
  await machine.sh("touch /run/patchbay-machine-test /var/lib/patchbay-machine-test; ip link add pbtest type bridge");
  expect(existsSync("/run/patchbay-machine-test")).toBe(false);
  expect(existsSync("/var/lib/patchbay-machine-test")).toBe(false);
  expect(Bun.spawnSync(["ip", "link", "show", "pbtest"]).exitCode).not.toBe(0);
});

test("a process left running is ended, and reported", async () => {
  const machine = await openMachine();
  await machine.sh("sleep 1000 >/dev/null 2>&1 & ");
  await expect(machine[Symbol.asyncDispose]()).rejects.toThrow("processes left behind");
});

test("the namespaces end with the machine", async () => {
  let pid: number;
  {
    await using machine = await openMachine();
    await machine.container("c1");
    pid = machine.pid;
    expect(existsSync(`/proc/${pid}/ns/net`)).toBe(true);
  }
  expect(existsSync(`/proc/${pid}/ns/net`)).toBe(false);
});

test("run() answers exit code, output and signals", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  expect(await machine.run(["sh", "-c", "cat; echo err >&2; exit 3"], { stdin: "in" }))
    .toEqual({ code: 3, stdout: "in", stderr: "err\n" });
  expect((await machine.run(["sh", "-c", "kill -9 $$"])).code).toBe(137);
  expect(await machine.sh("ip -o link | wc -l", { in: container })).toBe("1\n");
  expect(await machine.sh("echo $ONLY", { env: { ONLY: "this" } })).toBe("this\n");
});
