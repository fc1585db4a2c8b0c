/** Warnings: who hears them, which are not repeated, and that a name cannot steer a terminal. */
import { expect, test } from "bun:test";
import { callerId, endCall, forgetAfterCall, isCallerGone, isHandedOver, takeCall } from "../../src/process/calls.ts";
import { printable, printableWord } from "../../src/ffi/terminal.ts";
import { warn, warnOnce, whileWarning, withoutRepeating } from "../../src/process/warn.ts";

function heard(work: () => void): string[] {
  const messages: string[] = [];
  whileWarning((message) => void messages.push(message), work);
  return messages;
}

test("whoever listens hears the warnings of the work, and gets its result", () => {
  expect(heard(() => {
    warn("one");
    warn("one");
  })).toEqual(["one", "one"]);
  expect(whileWarning(() => {}, () => 7)).toBe(7);
  expect(() =>
    whileWarning(() => {}, () => {
      throw new Error("failed");
    })
  ).toThrow("failed");
});

test("without a listener they go to stderr, on a line that no name breaks", () => {
  const script = `
    const { warn, whileWarning } = await import("${import.meta.dir}/../../src/process/warn.ts");
    whileWarning(() => {}, () => {});
    warn("a \\u001b[31mname\\u0000");`;
  const { stderr, stdout } = Bun.spawnSync([process.execPath, "-e", script]);
  expect([stderr.toString(), stdout.toString()]).toEqual(["patchbay: a \\u001b[31mname\\u0000\n", ""]);
});

test("what a call meets several times is said once, and by the next call again", () => {
  const once = () => heard(() => ["one", "one", "other"].forEach(warnOnce));
  expect(once()).toEqual(["one", "other"]);
  expect(once()).toEqual([]);
  endCall();
  expect(once()).toEqual(["one", "other"]);
});

test("what an error will say is not warned of", () => {
  const all = heard(() => {
    const result = withoutRepeating("reason", () => {
      warn("one: reason");
      warn("reason: other");
      withoutRepeating("other", () => warn("within: reason"));
      warn("two: reason");
      return 7;
    });
    warn(`${result}: reason`);
    expect(() =>
      withoutRepeating("reason", () => {
        throw new Error("failed");
      })
    ).toThrow("failed");
    warn("after: reason");
  });
  expect(all).toEqual(["reason: other", "within: reason", "7: reason", "after: reason"]);
});

test("control characters are shown as JSON writes them; tab and newline only within a word", () => {
  expect(printable("a\tb\nc\r\0\x7f\x9f\xa0 ü")).toBe("a\tb\nc\\u000d\\u0000\\u007f\\u009f\xa0 ü");
  expect(printableWord("a\tb\nc\r")).toBe("a\\u0009b\\u000ac\\u000d");
});

test("a call that was handed over is its caller's until it ends", () => {
  const forgotten: string[] = [];
  forgetAfterCall(() => void forgotten.push("one"));
  forgetAfterCall(() => void forgotten.push("other"));
  const state = () => [isHandedOver(), isCallerGone(), callerId()];
  expect(state()).toEqual([false, false, undefined]);
  let isGone = false;
  takeCall({ id: () => "1 2", isGone: () => isGone });
  expect(state()).toEqual([true, false, "1 2"]);
  isGone = true;
  expect(state()).toEqual([true, true, "1 2"]);
  expect(forgotten).toEqual([]);
  endCall();
  expect([...state(), ...forgotten]).toEqual([false, false, undefined, "one", "other"]);
});
