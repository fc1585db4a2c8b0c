/** Collecting failures: every step is tried, and one error reports all failures. */
import { describe, expect, test } from "bun:test";
import { endCall, leaveToCaller } from "../../src/process/calls.ts";
import { CniError, errorText, nextStepOf } from "../../src/cni/error.ts";
import { attempt, attemptAll, collectFailures, followedBy, throwJoined } from "../../src/contract/failures.ts";
import { outcomeOf } from "../support/outcome.ts";

describe("trying", () => {
  test("every item is tried, and failures are returned in order", () => {
    const tried: number[] = [];
    const failures = collectFailures([1, 2, 3], (item) => {
      tried.push(item);
      if (item !== 2) throw new Error(`no ${item}`);
    });
    expect(tried).toEqual([1, 2, 3]);
    expect(failures.map(errorText)).toEqual(["no 1", "no 3"]);
  });

  test("attempt adds to the existing failures", () => {
    const failures: unknown[] = ["earlier"];
    attempt(failures, () => {});
    attempt(failures, () => {
      throw "later";
    });
    expect(failures).toEqual(["earlier", "later"]);
  });

  test("attemptAll runs the steps after one that fails, and throws", () => {
    const failure = new Error("first");
    let ran = false;
    const steps = [() => {
      throw failure;
    }, () => void (ran = true)];
    expect(outcomeOf(() => attemptAll(steps))).toBe(failure);
    expect(ran).toBe(true);
  });
});

test("after what leaves the call to its caller, no other step runs", () => {
  const ran: string[] = [];
  const steps = [() => leaveToCaller("a wait"), () => void ran.push("the next step")];
  expect(outcomeOf(() => attemptAll(steps))).toMatchObject({ message: "left to the caller: a wait" });
  endCall();
  expect(ran).toEqual([]);
});

describe("joining", () => {
  test("without failures nothing is thrown", () => {
    expect(outcomeOf(() => throwJoined([]))).toBeUndefined();
  });

  test("a single failure is thrown unchanged", () => {
    const failure = new CniError(11, "busy", "try again");
    expect(outcomeOf(() => throwJoined([failure]))).toBe(failure);
  });

  test("several have the code of the first CniError and the texts of all, details included", () => {
    const failures = [new Error("one"), new CniError(11, "two", "why"), new CniError(7, "three")];
    const error = outcomeOf(() => throwJoined(failures)) as CniError;
    expect(error).toBeInstanceOf(CniError);
    expect([error.code, error.message, error.details]).toEqual([11, "one; two; why; three", ""]);
    expect(error.cause).toBe(failures[0]);
  });

  test("errors without a code get none", () => {
    const error = outcomeOf(() => throwJoined([new Error("one"), new Error("two")], "\n")) as AggregateError;
    expect(error).toBeInstanceOf(AggregateError);
    expect(error.message).toBe("one\ntwo");
  });
});

test("an error keeps its next step when another wraps it, stands beside it or follows it", () => {
  const error = new CniError(11, "busy", "", { nextStep: "wait" }), wrapped = new Error("add", { cause: error });
  expect(nextStepOf(wrapped)).toBe("wait");
  expect(nextStepOf(outcomeOf(() => throwJoined([new CniError(7, "one"), wrapped])))).toBe("wait");
  for (const one of [error, wrapped]) expect(nextStepOf(followedBy(one, ["taking it back failed"]))).toBe("wait");
  expect([new Error("one", { cause: "two" }), "three", undefined].map(nextStepOf)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
