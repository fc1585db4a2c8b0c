/** What the command reports: for people, for programs, for systems that collect the results of tests. */
import { expect, test } from "bun:test";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demands } from "../../src/conformance/demands/table.ts";
import { failedDemands, pluginDirectory, reportOn, runConformance } from "../support/conformance.ts";
import { PATCHBAY } from "../support/plugins.ts";

const loopback = "exec $real/loopback";

test("people read a failure with its demand, its sentence, what was seen, and commands that show it", async () => {
  using plugins = pluginDirectory({
    "wrong-static": `[ "$CNI_COMMAND" = STATUS ] && { printf 'r\\033[31mready'; exit; }; exec $real/static`,
  });
  const { code, stdout, stderr } = await runConformance(plugins.path);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  const at = stdout.indexOf(
    "  FAILED success-prints-nothing (implied; Section 2, GC; Appendix, Check example)\n    demanded: CHECK, GC",
  );
  expect(at).toBeGreaterThan(0);
  expect(stdout.slice(at)).toMatch(/^ {4}seen: it says something on stdout: STATUS .*stdout r\\u001b\[31mready$/m);
  expect(stdout).toMatch(/1 plugin: \d+ passed, 1 failed, \d+ skipped\n$/);

  const commands = stdout.slice(stdout.indexOf("    by hand:\n")).split("\n").slice(1)
    .filter((line) => line.startsWith("      ")).map((line) => line.slice(6));
  expect(commands[0]).toBe("unshare --mount --net sh");
  const repeated = Bun.spawn(["unshare", "--mount", "--net", "sh", "-ec", commands.slice(1).join("\n")], {
    stdin: "ignore",
    stdout: "pipe",
  });
  expect(await repeated.stdout.text()).toContain("ready");
});

test("JUnit's file has every demand of every plugin, and is readable XML", async () => {
  using plugins = pluginDirectory({
    "less-static": `[ "$CNI_COMMAND" = STATUS ] && { printf '<&">\\001'; exit; }; exec $real/static`,
    "loopback": loopback,
  });
  const file = join(plugins.path, "result.xml");
  writeFileSync(file, "x".repeat(1_000_000));
  const { code } = await runConformance(plugins.path, "--junit", file);
  expect(code).toBe(1);
  const xml = readFileSync(file, "utf8");
  expect(xml).toStartWith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="patchbay conformance" tests="');
  const parsed = Bun.spawn(["python3", "-c", XML_SUMMARY, file], { stdout: "pipe" });
  const summary = JSON.parse(await parsed.stdout.text());
  expect(summary).toEqual({
    suites: ["less-static", "loopback"],
    cases: 2 * demands.length,
    failures: [["less-static", "success-prints-nothing"]],
    counts: { tests: 2 * demands.length, failures: 1, skipped: expect.any(Number) },
    skipped: expect.any(Number),
  });
  expect(summary.counts.skipped).toBe(summary.skipped);
  expect(xml).toContain("&lt;&amp;&quot;&gt;\ufffd");
});

test("JUnit's file may be a pipe, and one of an earlier run is empty when this one fails", async () => {
  using plugins = pluginDirectory({ loopback });
  const piped = Bun.spawn([
    "sh",
    "-c",
    '"$@" | cat',
    "sh",
    PATCHBAY,
    "conformance",
    plugins.path,
    "--junit=/dev/stdout",
  ]);
  expect(await piped.stdout.text()).toMatch(/^loopback: [^]*\n1 plugin: .*\n<\?xml [^]*<\/testsuites>\n$/);
  const file = join(plugins.path, "result.xml");
  writeFileSync(file, "<testsuites/>");
  const child = Bun.spawn([PATCHBAY, "conformance", plugins.path, "--junit", file], {
    stdout: openSync("/dev/full", "w"),
  });
  expect(await child.exited).toBe(3);
  expect(readFileSync(file, "utf8")).toBe("");
});

const XML_SUMMARY = `
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
cases = list(root.iter("testcase"))
print(json.dumps({
  "suites": [suite.get("name") for suite in root],
  "cases": len(cases),
  "failures": [[case.get("classname"), case.get("name")] for case in cases if case.find("failure") is not None],
  "skipped": len([case for case in cases if case.find("skipped") is not None]),
  "counts": {key: int(root.get(key)) for key in ("tests", "failures", "skipped")},
}))
`;

test("--json has the document of docs/json.md", async () => {
  using plugins = pluginDirectory({ loopback: '[ "$CNI_COMMAND" != STATUS ] || exit 3; exec $real/loopback' });
  const { report } = await reportOn(plugins.path);
  const [found] = report.plugins;
  expect(Object.keys(report)).toEqual(["passed", "failed", "unknown", "skipped", "plugins"]);
  expect(found).toMatchObject({ plugin: "loopback", kind: "main", version: "1.1.0", failed: 1 });
  expect(found!.path).toBe(join(plugins.path, "loopback"));
  expect(found!.demands.map(({ name }) => name)).toEqual(demands.map(({ name }) => name));
  expect(failedDemands(found!)).toEqual(["status-succeeds"]);
  expect(found!.demands.find(({ name }) => name === "status-succeeds")).toEqual({
    name: "status-succeeds",
    sentence: expect.any(String),
    section: "Section 2, STATUS",
    strength: "must",
    since: "1.1.0",
    outcome: "failed",
    reason: "STATUS ended with exit status 3, nothing on stdout",
    byHand: expect.arrayContaining([expect.stringMatching(/ CNI_COMMAND=STATUS .*\/loopback$/)]),
  });
});
