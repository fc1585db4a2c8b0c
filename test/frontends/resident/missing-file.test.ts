/** The resident's file is away while it is replaced, and gone when it stays away. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { OwnFile } from "../../../src/frontends/resident/own-file.ts";

const clock = spyOn(performance, "now");
afterEach(() => void clock.mockRestore());

test("a file that is missing is gone after ten seconds, from the first look without it", () => {
  const file = new OwnFile(), places = { missing: "/nowhere/patchbay", there: file.path };
  const looks: [place: keyof typeof places, atMs: number, isGone: boolean][] = [
    ["there", 20_000, false],
    ["missing", 100_000, false],
    ["missing", 110_000, false],
    ["there", 110_500, false],
    ["missing", 111_000, false],
    ["missing", 121_000, false],
    ["missing", 121_001, true],
  ];
  for (const [place, atMs, isGone] of looks) {
    Object.assign(file, { path: places[place] });
    clock.mockReturnValue(atMs);
    file.executeReplacement(() => {
      throw new Error("no file has replaced it");
    });
    expect([place, atMs, file.isGone]).toEqual([place, atMs, isGone]);
  }
});
