/** Failures in netavark's words. */
import { expect, test } from "bun:test";
import { ENODEV, ENOENT, SyscallError } from "../../../src/ffi/errno.ts";
import { NetlinkError } from "../../../src/ffi/netlink/netlink-error.ts";
import {
  failureText,
  inNetavarksWords,
  netlinkText,
  systemText,
  within,
} from "../../../src/resources/netavark/shared/failure.ts";

const fail = (error: Error) => () => {
  throw error;
};

test("the kernel's reasons are Rust's, and contexts stand before them", () => {
  const missing = new SyscallError("open", ENOENT, "/run/x"), gone = new NetlinkError("RTM_DELLINK eth0", ENODEV);
  expect(() => within("invalid namespace path", fail(missing))).toThrow(
    /^invalid namespace path: IO error: No such file or directory \(os error 2\)$/,
  );
  expect(() => within("a", () => within("b", fail(gone)))).toThrow(
    /^a: b: Netlink error: No such device \(os error 19\)$/,
  );
  expect(() => within("a", fail(new NetlinkError("x", ENODEV, "said so")))).toThrow(/\(os error 19\) \(said so\)$/);
  // Where nobody gave a context, what it was about is one.
  expect(() => inNetavarksWords(fail(missing))).toThrow(/^open \/run\/x: IO error: No such file/);
  expect(() => inNetavarksWords(fail(gone))).toThrow(/^RTM_DELLINK eth0: Netlink error: No such device/);
  expect(() => inNetavarksWords(fail(new Error("plain")))).toThrow(/^plain$/);
});

test("what is not the kernel's keeps its text, also around the kernel's", () => {
  const gone = new NetlinkError("RTM_DELLINK eth0", ENODEV), missing = new SyscallError("open", ENOENT, "/run/x");
  const around = new Error("failed to remove eth0: no such device", { cause: gone });
  expect(failureText(around)).toBe("failed to remove eth0: Netlink error: No such device (os error 19)");
  expect(failureText(new Error("plain", { cause: missing }))).toBe("plain");
  expect(failureText("thrown text")).toBe("thrown text");
  expect([netlinkText(gone), netlinkText(missing)]).toEqual([
    "Netlink error: No such device (os error 19)",
    "open /run/x: no such file or directory",
  ]);
  expect([systemText(missing), systemText(gone)]).toEqual([
    "IO error: No such file or directory (os error 2)",
    gone.message,
  ]);
});
