/** What the library throws: what is no CniError yet becomes one, by its kind. */
import { expect, test } from "bun:test";
import { CniError, INTERNAL, INVALID_CONFIG, IO_FAILURE } from "../../../src/cni/error.ts";
import { ENOENT, SyscallError } from "../../../src/ffi/errno.ts";
import { asCniError, childrenCollected } from "../../../src/frontends/library/in-process.ts";

test("a CniError stays what it is, the kernel's refusal is a failure of I/O, and all else is internal", () => {
  const own = new CniError(INVALID_CONFIG, "mtu"), refused = new SyscallError("open", ENOENT, "/nowhere");
  expect(asCniError(own)).toBe(own);
  expect(asCniError(refused)).toMatchObject({ code: IO_FAILURE, message: refused.message, cause: refused });
  const other = new TypeError("x is undefined");
  expect(asCniError(other)).toMatchObject({ name: "CniError", code: INTERNAL, message: other.message, cause: other });
});

test("where no child is left there is nothing to wait for", async () => {
  expect(await childrenCollected()).toBeUndefined();
});
