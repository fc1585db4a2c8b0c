/** Where ledgers are, by user and environment, and what is refused of a directory. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { privateDirectory, requireStateDirectory, stateDirectory } from "../../src/process/state-directory.ts";

const names = ["PATCHBAY_STATE_DIR", "XDG_RUNTIME_DIR"] as const;
const before = names.map((name) => process.env[name]);
afterEach(() => names.forEach((name, index) => set(name, before[index])));

function set(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

test.each([
  [0, undefined, undefined, "/run/patchbay"],
  [0, undefined, "/run/user/0", "/run/patchbay"],
  [1, undefined, "/run/user/1", "/run/user/1/patchbay"],
  [1000, undefined, "/run/user/1000", "/run/user/1000/patchbay"],
  [1000, undefined, undefined, "/run/patchbay"],
  [1000, undefined, "", "/run/patchbay"],
  // The XDG specification has a relative one ignored.
  [1000, undefined, "run", "/run/patchbay"],
  [1000, "/chosen", "/run/user/1000", "/chosen"],
  [0, "/chosen", undefined, "/chosen"],
])("of uid %d with %p and %p it is %s", (uid, chosen, ofUser, expected) => {
  set("PATCHBAY_STATE_DIR", chosen);
  set("XDG_RUNTIME_DIR", ofUser);
  using _ = spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(uid);
  expect(stateDirectory()).toBe(expected);
});

test("one that depends on the working directory is refused", () => {
  set("PATCHBAY_STATE_DIR", "state");
  expect(() => stateDirectory()).toThrow(
    expect.objectContaining({ code: 4, message: 'PATCHBAY_STATE_DIR is "state", and must be an absolute path' }),
  );
});

test("the root directory is no state directory", () => {
  for (const chosen of ["/", "//", "/.", "/./", "/..", "/run/.."]) {
    set("PATCHBAY_STATE_DIR", chosen);
    expect(() => stateDirectory()).toThrow(
      expect.objectContaining({
        code: 4,
        message: `PATCHBAY_STATE_DIR is "${chosen}", and must be a directory of its own`,
      }),
    );
  }
});

test("a directory below is the user's alone; what is in its way is told, and one that others can write to refused", () => {
  const top = mkdtempSync(`${tmpdir()}/state-`);
  set("PATCHBAY_STATE_DIR", top);
  try {
    privateDirectory(`${top}/one/two`);
    expect(statSync(`${top}/one/two`).mode & 0o777).toBe(0o700);
    writeFileSync(`${top}/file`, "");
    expect(() => privateDirectory(`${top}/file`)).toThrow(
      expect.objectContaining({
        code: 5,
        message: expect.stringContaining(`cannot use state directory "${top}/file": `),
      }),
    );
    chmodSync(`${top}/one/two`, 0o777);
    expect(() => privateDirectory(`${top}/one/two`)).toThrow("writable by nobody else");
    chmodSync(`${top}/one/two`, 0o700);
    chmodSync(top, 0o777);
    expect(() => privateDirectory(`${top}/one/two`)).toThrow("writable by nobody else");
    expect(() => privateDirectory(`${top}/three`)).toThrow("writable by nobody else");
    expect(() => statSync(`${top}/three`)).toThrow();
    // STATUS asks before an ADD does.
    expect(() => requireStateDirectory()).toThrow("writable by nobody else");
    chmodSync(top, 0o700);
    expect(() => requireStateDirectory()).not.toThrow();
  } finally {
    rmSync(top, { recursive: true });
  }
});
