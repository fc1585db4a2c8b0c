/** What the kernel says of a process, as long as it is the same one. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ownProcessId, processId } from "../../src/process/calls.ts";
import { missingPrivileges } from "../../src/ffi/capabilities.ts";
import { OtherProcess } from "../../src/ffi/other-process.ts";
import { memoryKib, ProcessFiles } from "../../src/ffi/process-files.ts";
import { isKilled, SIGKILL, SIGTERM } from "../../src/ffi/signals.ts";

test("texts, links and values of this process", () => {
  const open = () => readdirSync("/proc/self/fd").length, before = open();
  for (const process of ["self", globalThis.process.pid] as const) {
    const files = new ProcessFiles(process);
    expect(files.text("cmdline")).toBe(readFileSync("/proc/self/cmdline", "utf8"));
    expect(files.link("ns/net")).toBe(readlinkSync("/proc/self/ns/net"));
    expect(files.value("Pid")).toBe(String(globalThis.process.pid));
    expect(files.value("CapEff")).toMatch(/^[0-9a-f]{16}$/);
    expect([files.value("Cap"), files.value("None")]).toEqual(["", ""]);
    expect(() => files.text("none")).toThrow("openat none: no such file or directory");
    expect(() => files.link("none")).toThrow("readlinkat none: no such file or directory");
    files.close();
  }
  expect(open()).toBe(before);
  expect(() => new ProcessFiles(2 ** 22 + 1)).toThrow("open /proc/4194305: no such file or directory");
});

test("of a process that has ended nothing is read any more", async () => {
  const child = Bun.spawn(["sleep", "1000"], { stdio: ["ignore", "ignore", "ignore"] });
  const files = new ProcessFiles(child.pid), known = OtherProcess.open(child.pid)!;
  const before = {
    pid: files.value("Pid"),
    memory: memoryKib(child.pid),
    ended: known.hasEnded,
    told: known.signal(0),
  };
  known.signal(SIGKILL);
  await child.exited;
  expect(before).toMatchObject({ pid: String(child.pid), ended: false, told: true });
  expect(() => files.text("stat")).toThrow("no such process");
  expect([known.hasEnded, known.endsWithin(-1), known.signal(SIGTERM)]).toEqual([true, true, false]);
  expect(OtherProcess.open(child.pid)).toBeUndefined();
  expect(memoryKib(child.pid)).toEqual({ all: 0, own: 0 });
  files.close();
  known.close();
  expect(() => known.signal(0)).toThrow(`pidfd_send_signal process ${child.pid}: bad file descriptor`);
});

test("memory is counted in all, and of its own", () => {
  const { all, own } = memoryKib("self"), status = readFileSync("/proc/self/status", "utf8");
  expect(own).toBeGreaterThan(1000);
  expect(all).toBeGreaterThan(own);
  expect(all).toBeLessThanOrEqual(Number(/^VmHWM:\s+(\d+)/m.exec(status)![1]));
});

test("a process is known by its number and the time of its start, whatever its name", () => {
  const numbers = Array.from({ length: 52 }, (_, index) => index + 1);
  const stat = `${numbers[0]} (a) b (c)) ${["S", ...numbers.slice(3)].join(" ")}\n`;
  expect(processId(stat)).toBe("1 22");
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  expect(ownProcessId()).toBe(`${process.pid} ${fields[19]}`);
});

test("a process that runs has not been killed, and of one that is gone nothing is known", async () => {
  const child = Bun.spawn(["sleep", "1000"], { stdio: ["ignore", "ignore", "ignore"] });
  expect(isKilled(child.pid)).toBe(false);
  child.kill("SIGKILL");
  await child.exited;
  expect(() => isKilled(child.pid)).toThrow(`open /proc/${child.pid}/status: no such file or directory`);
});

test("what a process may not do is said", () => {
  const script = `
    import { missingPrivileges } from "${import.meta.dir}/../../src/ffi/capabilities.ts";
    console.log(JSON.stringify(missingPrivileges() ?? null));`;
  const run = (...before: string[]) => {
    const { stdout, stderr } = Bun.spawnSync([...before, process.execPath, "-e", script]);
    expect(stderr.toString()).toBe("");
    return JSON.parse(stdout.toString());
  };
  expect(run()).toBe(missingPrivileges() ?? null);
  const without = `this needs root, or a user namespace of its own: uid ${process.geteuid!()} has not `;
  if (missingPrivileges() !== undefined) return expect(missingPrivileges()).toContain(without);
  const drop = (...names: string[]) => ["setpriv", `--bounding-set=${names.map((name) => `-${name}`).join(",")}`];
  expect(run(...drop("net_admin"))).toBe(`${without}CAP_NET_ADMIN`);
  expect(run(...drop("sys_admin"))).toBe(`${without}CAP_SYS_ADMIN`);
  expect(run(...drop("net_admin", "sys_admin"))).toBe(`${without}CAP_NET_ADMIN and CAP_SYS_ADMIN`);
  expect(run(...drop("net_raw"))).toBeNull();
});
