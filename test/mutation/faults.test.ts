/** The list of seeded faults matches the sources: each text occurs exactly once in its file. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { faults } from "./faults.ts";

const root = resolve(import.meta.dir, "../..");

test("each fault's text stands once in its file, and its tests exist", () => {
  const wrong = faults.flatMap(({ file, find, replace, tests }) => {
    const path = join(root, file);
    const times = existsSync(path) ? readFileSync(path, "utf8").split(find).length - 1 : 0;
    const missing = tests.filter((test) => !existsSync(join(root, test)));
    return [
      ...times === 1 ? [] : [`${file}: "${find}" stands there ${times} times`],
      ...find === replace || find.includes("\n") ? [`${file}: "${find}" is no change of one line`] : [],
      ...missing.map((test) => `${file}: ${test} is missing`),
    ];
  });
  expect(wrong).toEqual([]);
});

test("the faults of a file stand beside each other, in the list of their room", () => {
  const files = faults.map(({ file }) => file), runs = files.filter((file, index) => file !== files[index - 1]);
  expect(runs.filter((file, index) => runs.indexOf(file) !== index)).toEqual([]);
});

test("there are faults in every room", () => {
  const rooms = readdirSync(join(root, "src"), { withFileTypes: true }).filter((one) => one.isDirectory());
  const plugins = ["main", "ipam", "meta"].map((kind) => `plugins/${kind}`);
  const places = [...rooms.map(({ name }) => name), ...plugins, "ffi/netlink"].map((room) => `src/${room}/`);
  for (const place of [...places, "compile/"]) {
    expect({ place, has: faults.some(({ file }) => file.startsWith(place)) }).toEqual({ place, has: true });
  }
  expect(faults.length).toBeGreaterThanOrEqual(40);
});
