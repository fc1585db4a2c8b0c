/** What errors become for the caller, and what is said when an ADD of another program cannot be taken back. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { CniError } from "../../src/cni/error.ts";
import { openSession } from "../../src/engine/run.ts";
import * as capabilities from "../../src/ffi/capabilities.ts";
import { EACCES, EMFILE, EPERM, SyscallError } from "../../src/ffi/errno.ts";
import { NetlinkError } from "../../src/ffi/netlink/netlink-error.ts";
import {
  benchForEachTest,
  callOf,
  containers,
  containerWith,
  NETNS,
  pluginOf,
  warningsOf,
} from "../support/engine-bench.ts";
import { refusal } from "../support/outcome.ts";
import { replacedExports } from "../support/replaced-exports.ts";

const replaced = replacedExports(require.resolve("../../src/ffi/capabilities.ts"), capabilities, {
  missingPrivileges: () => "this needs root",
});

const bench = benchForEachTest();
beforeEach(() => {
  replaced.begin();
  containers[NETNS] = containerWith({});
});
afterEach(() => replaced.end());

const OTHER = "/run/netns/y";

describe("errors", () => {
  const thrown = (error: unknown): [number, string, string] => {
    const plugin = pluginOf([], {
      add: () => {
        throw error;
      },
    });
    const [code, message, details = ""] = refusal(() => openSession().runVerb(plugin, callOf("ADD")));
    return [code, message, details];
  };
  const within = (cause: unknown) => new Error("it failed", { cause });
  const syscall = (errno: number) => new SyscallError("open", errno, "x");
  const rows: [what: string, error: unknown, expected: [code: number, message: string, details: string]][] = [
    ["one with a code stays", new CniError(11, "later", "soon"), [11, "later", "soon"]],
    ["a system call's is of input and output", syscall(EMFILE), [5, "open x: too many open files", ""]],
    ["any other is internal", new TypeError("oops"), [999, "oops", ""]],
    ["what the kernel does not permit needs root", syscall(EPERM), [
      5,
      "open x: operation not permitted",
      "this needs root",
    ]],
    ["access, too", syscall(EACCES), [5, "open x: permission denied", "this needs root"]],
    ["by netlink, too", new NetlinkError("RTM_NEWLINK x", EPERM), [
      999,
      "RTM_NEWLINK x: operation not permitted",
      "this needs root",
    ]],
    ["by netlink, access too", new NetlinkError("RTM_NEWLINK x", EACCES), [
      999,
      "RTM_NEWLINK x: permission denied",
      "this needs root",
    ]],
    ["also where it is the cause", within(within(syscall(EPERM))), [999, "it failed", "this needs root"]],
    ["but not where the cause is another", within(syscall(EMFILE)), [999, "it failed", ""]],
    [
      "one with a code has that behind its own details",
      new CniError(7, "refused", "because", { cause: syscall(EPERM) }),
      [7, "refused", "because; this needs root"],
    ],
    [
      "once",
      new CniError(7, "refused", "because; this needs root", { cause: syscall(EPERM) }),
      [7, "refused", "because; this needs root"],
    ],
  ];
  test.each(rows)("%s", (_, error, expected) => expect(thrown(error)).toEqual(expected));

  const netns: [what: string, error: Error, reason: string][] = [
    ["is gone", syscall(2), `failed to Statfs "${OTHER}": no such file or directory`],
    ["cannot be opened", syscall(EMFILE), "open x: too many open files"],
  ];
  test.each(netns)("a namespace that %s", (_, error, reason) => {
    Object.defineProperty(containers, OTHER, {
      configurable: true,
      enumerable: true,
      get() {
        throw error;
      },
    });
    expect(() => openSession().runVerb(pluginOf([]), callOf("ADD", {}, { netnsPath: OTHER }))).toThrow(
      expect.objectContaining({
        code: 4,
        message: `failed to open netns "${OTHER}": ${reason}`,
        details: "CNI_NETNS must be the path of a network namespace",
      }),
    );
  });
});

describe("another program whose ADD fails", () => {
  const fails = (script: string) => {
    mkdirSync(`${bench.directory}/bin`);
    const program = `${bench.directory}/bin/foreign`;
    writeFileSync(program, `#!/bin/sh\n${script}\n`);
    chmodSync(program, 0o755);
    const path = `${bench.directory}/bin`;
    return warningsOf(() =>
      expect(() => openSession().delegate("foreign", callOf("ADD", {}, { path }))).toThrow("one")
    );
  };

  test("and whose DEL fails, too, is warned of once for each reason", () => {
    expect(fails(`echo '{"code":7,"msg":"one"}'; exit 1`)).toEqual([
      `${bench.directory}/bin/foreign failed ADD, and the DEL after it for the same reason`,
    ]);
  });

  test("and whose DEL fails otherwise", () => {
    expect(fails(`echo '{"code":7,"msg":"one '$CNI_COMMAND'"}'; exit 1`)).toEqual([
      `${bench.directory}/bin/foreign failed ADD, and the DEL after it too: one DEL`,
    ]);
  });
});
