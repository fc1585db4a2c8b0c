/** The state that a runtime writes to its hooks: what is read of it, and what is refused. */
import { expect, test } from "bun:test";
import { parseEndedState, parseState, STATE_LIMIT_BYTES } from "../../../src/frontends/hook/state.ts";
import { textThrown } from "../../support/outcome.ts";

const state = { ociVersion: "1.0.2", id: "web", status: "creating", pid: 7, bundle: "/run/b" };

test("a state of runc, and one of crun", () => {
  const runc =
    `{"ociVersion":"1.0.2-dev","id":"web","status":"creating","pid":7,"bundle":"/run/b","annotations":{"a":"b"}}`;
  expect(parseState(runc)).toEqual({
    id: "web",
    status: "creating",
    pid: 7,
    bundle: "/run/b",
    annotations: { a: "b" },
  });
  const crun = `{"ociVersion":"1.0","id":"web","pid":0,"root":"/run/root","bundle":"/run/b","status":"created"}`;
  expect(parseState(crun)).toEqual({
    id: "web",
    status: "created",
    pid: undefined,
    bundle: "/run/b",
    annotations: {},
  });
});

const wrong: [what: string, text: string, says: string][] = [
  ["nothing", " \n", "stdin is empty; container runtimes write a container's state to their hooks"],
  ["no JSON", "{", "the container's state on stdin: "],
  ["a list", "[]", "it must be a JSON object"],
  ["null", "null", "it must be a JSON object"],
  ["too deep", `{"x":${"[".repeat(200)}${"]".repeat(200)}}`, "nests deeper than 100"],
  ...Object.entries({
    'ociVersion" is missing': { ociVersion: undefined },
    'ociVersion" is "2.0.0"; this program reads the states of versions 1': { ociVersion: "2.0.0" },
    'ociVersion" is 1;': { ociVersion: 1 },
    '"id" is missing': { id: undefined },
    '"id" is ""': { id: "" },
    '"id" is 5': { id: 5 },
    '"id" is "a+b": invalid characters in containerID; CNI takes letters,': { id: "a+b" },
    '"id" is "../x": invalid characters': { id: "../x" },
    '"status" is missing': { status: undefined },
    '"pid" is "7"; it must be a process id': { pid: "7" },
    '"pid" is -1': { pid: -1 },
    '"pid" is 1.5': { pid: 1.5 },
    '"pid" is null': { pid: null },
    '"bundle" is "b"; it must be an absolute path': { bundle: "b" },
    '"bundle" is "/run/b\\u0000"': { bundle: "/run/b\0" },
    '"annotations" is ["a"]; it must be an object of strings': { annotations: ["a"] },
    '"annotations.a" is 5; it must be a string': { annotations: { a: 5 } },
  }).map(([says, changes]): [string, string, string] => [says, JSON.stringify({ ...state, ...changes }), says]),
];

test.each(wrong)("refused: %s", (_what, text, says) => {
  expect(textThrown(() => parseState(text))).toContain(says);
});

test("of an ended container the id is enough, whatever the rest is", () => {
  const broken = { id: "web", ociVersion: 5, status: {}, pid: "x", bundle: 7, annotations: { a: 5 } };
  expect(parseEndedState(JSON.stringify(broken))).toEqual({ id: "web", annotations: {} });
  expect(parseEndedState('{"id":"web","annotations":{"a":"b"}}')).toEqual({ id: "web", annotations: { a: "b" } });
  for (const id of [undefined, "", "a/b", 5]) {
    expect(() => parseEndedState(JSON.stringify({ id }))).toThrow('"id" is');
  }
});

test("what is wrong is shown up to its 200th character; the largest state has a mebibyte", () => {
  const message = `the container's state on stdin: "pid" is "${"x".repeat(199)}`;
  expect(() => parseState(JSON.stringify({ ...state, pid: "x".repeat(250) }))).toThrow(
    expect.objectContaining({ message }),
  );
  expect(STATE_LIMIT_BYTES).toBe(1_048_576);
});
