/** Failures in netavark's words. */
import { expect, test } from "bun:test";
import { ENODEV, ENOENT, SyscallError } from "../../../src/ffi/errno.ts";
import { NetlinkError } from "../../../src/ffi/netlink/netlink-error.ts";
import { inNetavarksWords, within } from "../../../src/resources/netavark/shared/failure.ts";

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
