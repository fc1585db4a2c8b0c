/** The options of a podman network with our driver. */
import { expect, test } from "bun:test";
import { readDriverOptions } from "../../../src/frontends/podman/options.ts";

test("what is said, and what is not", () => {
  const none = { conflist: undefined, ignoresPorts: false };
  expect(readDriverOptions()).toEqual(none);
  expect(readDriverOptions({ conflist: "web" })).toEqual({ ...none, conflist: "web" });
  expect(readDriverOptions({ pluginPath: "/opt", ports: "ignore" })).toEqual({ ...none, ignoresPorts: true });
});

const known = "there are conflist, pluginPath, ports. The conflist says everything else";
test.each([
  [{ ports: "yes" }, 'option ports=yes: the only value is "ignore"'],
  [{ ports: "" }, 'option ports=: the only value is "ignore"'],
  [{ conflict: "web" }, `option conflict=web: it is not known; did you mean "conflist"? ${known}`],
  [{ conflist: "web", isolate: "true" }, `option isolate=true: it is not known; ${known}`],
])("%j is refused", (given, message) => {
  expect(() => readDriverOptions(given as Record<string, string>)).toThrow(new Error(message));
});
