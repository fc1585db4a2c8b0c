/** The tar of a report, as tar(1) reads it. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import fc from "fast-check";
import { type ReportFile, reportTar } from "../../src/explain/report/report.ts";
import { memberName, tarOf } from "../../src/explain/report/tar.ts";

const directory = mkdtempSync(`${tmpdir()}/report-tar-`);
afterAll(() => rmSync(directory, { recursive: true }));

function tar(bytes: Uint8Array, ...args: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync(["tar", ...args], {
    stdin: bytes,
    env: { ...process.env, TZ: "UTC" },
  });
  expect({ stderr: stderr.toString(), exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout.toString();
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const seconds = Date.UTC(2026, 0, 2, 3, 4) / 1000;

test("members of all sizes come out as they went in, and belong to root alone", () => {
  const members = [0, 1, 511, 512, 513, 100_000].map((size) => ({
    name: `report/${size}`,
    bytes: utf8("x".repeat(size)),
  }));
  const bytes = tarOf(members, seconds);
  expect(tar(bytes, "tvf", "-").split("\n")[2]).toMatch(/^-rw------- root\/root +511 2026-01-02 03:04 report\/511$/);
  tar(bytes, "xf", "-", "-C", directory);
  for (const { name, bytes } of members) expect(readFileSync(`${directory}/${name}`)).toEqual(Buffer.from(bytes));
  expect(tarOf(members, seconds)).toEqual(bytes);
});

test("no name leads elsewhere, is taken for an option, is another's, or is too long", () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom("..", "/etc/passwd", "-x", "", ".", "a/../../b", "\u001b[2J", "é".repeat(300)),
  );
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (names) => {
      const taken = new Set<string>(),
        made = names.map((name) => memberName(`report/${name.replaceAll("/", "_")}`, taken));
      expect(new Set(made).size).toBe(names.length);
      for (const name of made) expect(name).toMatch(/^report\/[A-Za-z0-9_@~][A-Za-z0-9._@~-]{0,60}$/);
      expect(tar(tarOf(made.map((name) => ({ name, bytes: utf8("") })), 0), "tf", "-").trim().split("\n")).toEqual(
        made,
      );
    }),
    { numRuns: 30 },
  );
  expect(memberName("report/../../x", new Set())).toBe("report/_../_../x");
});

test("what is too long is cut, and says so", () => {
  const line = `${"x y ".repeat(25)}\n`;
  const files: ReportFile[] = [
    ["long.txt", () => line.repeat(20_000)],
    ...Array.from({ length: 30 }, (_, at): ReportFile => [`${at}.txt`, () => line.repeat(10_000)]),
    ["containers/MyWeb1/routing-rules.jsonl", () => "{}"],
    ["broken.txt", () => {
      throw new Error("no such thing");
    }],
  ];
  const bytes = reportTar(files.slice(0, 2).concat(files.slice(-2)), new Date(0), ["patchbay 1"], []);
  const text = (name: string) => tar(bytes, "xOf", "-", name);
  expect(text("report/long.txt")).toEndWith(
    `${line}\n(cut: ${20_000 * 101 - Math.floor(1048576 / 101) * 101} bytes more)\n`,
  );
  expect(text("report/broken.txt")).toBe("not read: no such thing\n");
  expect(text("report/containers/MyWeb1/routing-rules.jsonl")).toBe("{}");
  expect(text("report/README")).not.toContain("left out");
  const all = reportTar(files, new Date(0), ["patchbay 1"], []);
  expect(all.length).toBeLessThan(18 * 1024 * 1024);
  expect(tar(all, "xOf", "-", "report/README")).toMatch(/It is long enough: \d+ files are left out/);
});
