/** What the service says: no more than somebody can read, also when others cause it. */
import { expect, spyOn, test } from "bun:test";
import * as trace from "../../../../src/contract/trace.ts";
import * as clock from "../../../../src/ffi/clock.ts";
import * as terminal from "../../../../src/ffi/terminal.ts";
import { say, sayRarely } from "../../../../src/services/dhcp/service/log.ts";

const program = `
  import { sayRarely } from "${import.meta.dir}/../../../../src/services/dhcp/service/log.ts";
  for (let round = 0; round < 2; round++) {
    for (let subject = 0; subject < 3000; subject++) sayRarely("subject " + subject, "line " + subject);
  }
`;

test("subjects that others make up are not said without end, and none is said twice", () => {
  const { stderr } = Bun.spawnSync([process.execPath, "-e", program]);
  const lines = stderr.toString().trim().split("\n");
  expect(lines.length).toBe(1000);
  expect(new Set(lines).size).toBe(1000);
});

test("a subject is said again after a minute, and the oldest make room for others; the trace has everything", () => {
  const said: string[] = [], traced: string[] = [];
  // Behind whatever else was said in this process.
  const begin = 1e9;
  let now = begin;
  using _line = spyOn(terminal, "printToStderr").mockImplementation((line) => void said.push(line));
  using _clock = spyOn(clock, "preciseSecondsSinceBoot").mockImplementation(() => now);
  using _trace = spyOn(trace, "note").mockImplementation((_, { text, ...facts }) =>
    void traced.push(`${text} ${JSON.stringify(facts)}`)
  );
  const saidAt = (at: number, ...subjects: string[]) => {
    now = begin + at;
    for (const subject of subjects) sayRarely(subject, `about ${subject}`, { at });
    return said.splice(0);
  };
  say("at once", { why: 5 });
  expect([said.splice(0), traced.splice(0)]).toEqual([["at once"], ['at once {"why":5}']]);
  expect(saidAt(0, "a", "b")).toEqual(["about a", "about b"]);
  expect(saidAt(59.9, "a")).toEqual([]);
  expect(traced.splice(0).at(-1)).toBe('about a {"at":59.9}');
  expect(saidAt(60, "a", "a")).toEqual(["about a"]);
  // A thousand subjects of this minute make no room.
  const others = Array.from({ length: 998 }, (_, number) => `subject ${number}`);
  expect(saidAt(61, ...others).length).toBe(998);
  expect(saidAt(61, "one more", "a", "b")).toEqual(["about one more"]);
  expect(saidAt(119.9, "too many")).toEqual([]);
  expect(traced.at(-1)).toBe('about too many {"at":119.9}');
  // The minute of "a" is over.
  expect(saidAt(120, "c", "d")).toEqual(["about c"]);
  expect(saidAt(1000, "the end")).toEqual(["about the end"]);
});
