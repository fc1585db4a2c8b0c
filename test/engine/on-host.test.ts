/** Work on a host for which no verb runs. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { onHost } from "../../src/engine/on-host.ts";
import {
  type Bench,
  containers,
  containerWith,
  NETNS,
  openBench,
  opens,
  OWN_NETNS,
} from "../support/engine-bench.ts";

let bench: Bench;
beforeEach(() => (bench = openBench()));
afterEach(() => bench[Symbol.dispose]());

test("the host is closed, whatever happens", () => {
  expect(onHost(({ container }) => `container ${container}`)).toBe("container undefined");
  const failing = () =>
    onHost((host) => {
      host.waitUntilAlone();
      throw new Error("not now");
    });
  expect(failing).toThrow("not now");
  expect(opens.map((line) => line.trim())).toEqual(["open", "close", "open", "wait until alone", "close"]);
});

test("with the container of a path, which may be in the namespace of this process only where that is permitted", () => {
  containers[NETNS] = containerWith({}, { cookie: "7" });
  containers[OWN_NETNS] = containerWith({}, { cookie: "1" });
  expect(onHost(({ container }) => container!.cookie, NETNS)).toBe("7");
  expect(onHost(({ container }) => container!.cookie, OWN_NETNS, { allowOwn: true })).toBe("1");
  expect(() => onHost(() => expect.unreachable(), OWN_NETNS)).toThrow();
});
