/** What makes a caller another one than this process, and what does not. The kernel's word is in resident.test.ts. */
import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { ProcessFiles } from "../../../src/ffi/process-files.ts";
import { type Difference, differenceOf } from "../../../src/frontends/resident/caller-difference.ts";

/** This process, but for one thing that the kernel says of it. */
class Altered extends ProcessFiles {
  constructor(private readonly what: string) {
    super("self");
  }

  override value(name: string): string {
    return name === this.what ? `${super.value(name)}1` : super.value(name);
  }

  override link(name: string): string {
    return name === this.what ? `${super.link(name)}1` : super.link(name);
  }
}

function differenceIn(what: string): Difference | undefined {
  const other = new Altered(what), difference = differenceOf(other);
  other.close();
  return difference;
}

test("a caller that is like this process has no difference, and looking leaves nothing open", () => {
  const open = () => readdirSync("/proc/self/fd").length, before = open();
  expect(differenceIn("")).toBeUndefined();
  expect(open()).toBe(before);
});

test.each<[difference: Difference | "none", of: string[]]>([
  ["uid", ["Uid", "Gid"]],
  ["namespace", ["ns/mnt", "ns/net", "ns/user", "ns/pid", "root"]],
  ["capabilities", ["CapPrm", "CapEff", "CapBnd"]],
  ["confinement", ["NoNewPrivs", "Seccomp", "Seccomp_filters"]],
  ["none", ["Groups", "CapInh", "CapAmb", "Pid", "ns/uts", "ns/ipc", "ns/cgroup", "cwd", "exe"]],
])("%s: %j", (difference, of) => {
  expect(of.map((what) => [what, differenceIn(what) ?? "none"])).toEqual(of.map((what) => [what, difference]));
});
