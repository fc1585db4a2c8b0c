/** The texts of all failures that the kernel knows. */
import { CString, dlopen } from "bun:ffi";
import { expect, test } from "bun:test";
import { ECONNRESET, errnoText } from "../../src/ffi/errno.ts";

const HIGHEST = 133;
const { symbols: { strerror } } = dlopen("libc.so.6", { strerror: { args: ["i32"], returns: "ptr" } });

/** As the C library words it, in lower case but for acronyms. */
function worded(errno: number): string {
  const text = String(new CString(strerror(errno)!));
  return /^.[A-Z]/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

test("each has the C library's text, and what is none is said with its number", () => {
  const numbers = Array.from({ length: HIGHEST + 2 }, (_, index) => index + 1);
  expect(numbers.map(errnoText)).toEqual(numbers.map(worded));
  expect(errnoText(ECONNRESET)).toBe("connection reset by peer");
  for (const stranger of [0, -1, 524, 4096]) expect(errnoText(stranger)).toBe(`unknown error ${stranger}`);
});
