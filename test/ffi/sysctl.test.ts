/** Kernel parameters: which keys there may be, what is read, and what an optional setting may do without. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { readSysctl, tryWriteSysctl, writeSysctl } from "../../src/ffi/sysctl.ts";

const open = () => readdirSync("/proc/self/fd").length;

test("a value is read without its newline; there is none where the kernel has no such key", () => {
  const before = open();
  expect(readSysctl("kernel/ostype")).toBe("Linux");
  expect(readSysctl("net/ipv4/ip_local_port_range")).toMatch(/^\d+\t\d+$/);
  expect([readSysctl("kernel/none"), readSysctl("net/ipv4/conf/none/forwarding")]).toEqual([undefined, undefined]);
  expect(() => readSysctl("kernel")).toThrow("read kernel: is a directory");
  expect(open()).toBe(before);
});

test.each(["", "/kernel", "kernel/", "kernel//ostype", "net/./ipv4", "net/../kernel/ostype", ".."])(
  "%j is no key",
  (key) => {
    for (
      const use of [readSysctl, (one: string) => writeSysctl(one, "1"), (one: string) => tryWriteSysctl(one, "1")]
    ) {
      expect(() => use(key)).toThrow(`open sysctl ${JSON.stringify(key)}: invalid argument`);
    }
  },
);

test("an optional setting may be missing or not be ours to change, another failure is one", () => {
  const before = open();
  tryWriteSysctl("kernel/none", "1");
  expect(() => writeSysctl("kernel/none", "1")).toThrow("open /proc/sys/kernel/none: no such file or directory");
  // Nobody may write what the kernel is called.
  tryWriteSysctl("kernel/ostype", "other");
  expect(() => writeSysctl("kernel/ostype", "other")).toThrow("/proc/sys/kernel/ostype");
  expect(() => tryWriteSysctl("kernel", "1")).toThrow("open /proc/sys/kernel: is a directory");
  expect(readSysctl("kernel/ostype")).toBe("Linux");
  expect(open()).toBe(before);
});
