/** The error document of the specification, and our one-line form of it. */
import { expect, test } from "bun:test";
import { CniError, errorText, formatError } from "../../src/cni/error.ts";

test("formatError() leaves out what is empty", () => {
  expect(formatError(new CniError(7, "missing network name"))).toBe(`{
    "code": 7,
    "msg": "missing network name"
}`);
  expect(formatError(new CniError(4, "invalid characters in containerID", "%%"), "1.0.0")).toBe(`{
    "cniVersion": "1.0.0",
    "code": 4,
    "msg": "invalid characters in containerID",
    "details": "%%"
}`);
});

test("errorText() joins message and details", () => {
  expect(errorText(new CniError(11, "try", "later"))).toBe("try; later");
  expect(errorText(new CniError(11, "try"))).toBe("try");
  expect(errorText(new Error("other"))).toBe("other");
  expect(errorText("text")).toBe("text");
});
