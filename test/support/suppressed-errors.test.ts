/** What the runner prints of a test that fails, and whose machine then cannot be closed (bunfig.toml loads it). */
import { expect, test } from "bun:test";

const badlyClosed = {
  [Symbol.asyncDispose]: () => Promise.reject(new Error("processes left behind: 7 /bin/sleep")),
};

test("the message of such an error says both, and where", async () => {
  const failing = (async () => {
    await using _machine = badlyClosed;
    expect("this").toBe("that");
  })();
  const error = await failing.catch((error) => error);
  expect(error).toBeInstanceOf(SuppressedError);
  const [before, after] = error.message.split("Afterwards, what the test had opened could not be closed: ");
  expect(before).toContain('Expected: "that"');
  expect(before).toContain(`at <anonymous> (${import.meta.path}:`);
  expect(after).toContain("error: processes left behind: 7 /bin/sleep");
});
