/** What was seen: for people, for programs, for systems that collect the results of tests. */
import type { Outcome, PluginReport } from "./demand.ts";

type Counts = Record<Outcome["outcome"], number>;

export function countsOf(outcomes: readonly Outcome[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, unknown: 0, skipped: 0 };
  for (const { outcome } of outcomes) counts[outcome]++;
  return counts;
}

export function countsOfAll(reports: readonly PluginReport[]): Counts {
  return countsOf(reports.flatMap(({ outcomes }) => outcomes));
}

function inWords({ passed, failed, unknown, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${unknown === 0 ? "" : `${unknown} unknown, `}${skipped} skipped`;
}

export function forPeople(reports: readonly PluginReport[]): string {
  const lines = reports.flatMap((report) => [...linesOf(report), ""]);
  return [
    ...lines,
    `${reports.length} ${reports.length === 1 ? "plugin" : "plugins"}: ${inWords(countsOfAll(reports))}`,
    "",
  ].join("\n");
}

function linesOf({ plugin, path, kind, version, outcomes }: PluginReport): string[] {
  const shown = outcomes.filter((one) => one.outcome === "failed" || one.outcome === "unknown");
  return [
    `${plugin}: ${inWords(countsOf(outcomes))} (${path}, ${kind ?? "kind unknown"}, asked in ${version})`,
    ...shown.flatMap(({ demand, outcome, reason, byHand }) => [
      `  ${outcome.toUpperCase()} ${demand.name} (${demand.strength}; ${demand.section})`,
      `    demanded: ${demand.sentence}`,
      `    seen: ${reason}`,
      ...byHand.length === 0 ? [] : ["    by hand:", ...byHand.map((command) => `      ${command}`)],
    ]),
    ...skippedLines(outcomes),
  ];
}

function skippedLines(outcomes: readonly Outcome[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const one of outcomes) {
    if (one.outcome === "skipped") byReason.getOrInsertComputed(one.reason, () => []).push(one.demand.name);
  }
  return [...byReason].map(([reason, names]) => `  skipped: ${reason}: ${names.join(", ")}`);
}

export function forPrograms(reports: readonly PluginReport[]) {
  const plugins = reports.map(({ outcomes, ...report }) => ({
    ...report,
    ...countsOf(outcomes),
    demands: outcomes.map(({ demand, outcome, ...seen }) => {
      const { name, sentence, section, strength, since } = demand;
      return { name, sentence, section, strength, since, outcome, ...seen };
    }),
  }));
  return { ...countsOfAll(reports), plugins };
}

/** JUnit's XML: a suite for each plugin, a test case for each demand. */
export function asJUnit(reports: readonly PluginReport[]): string {
  const suites = reports.map(({ plugin, outcomes }) =>
    `  <testsuite name="${escaped(plugin)}" ${totals(countsOf(outcomes))}>\n` +
    `${outcomes.map((outcome) => caseOf(plugin, outcome)).join("")}  </testsuite>\n`
  );
  return '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<testsuites name="patchbay conformance" ${totals(countsOfAll(reports))}>\n${suites.join("")}</testsuites>\n`;
}

function totals({ passed, failed, unknown, skipped }: Counts): string {
  const all = passed + failed + unknown + skipped;
  return `tests="${all}" failures="${failed}" errors="${unknown}" skipped="${skipped}"`;
}

function caseOf(plugin: string, seen: Outcome): string {
  const { name, sentence, section } = seen.demand;
  const head = `    <testcase classname="${escaped(plugin)}" name="${name}"`;
  if (seen.outcome === "passed") return `${head}/>\n`;
  if (seen.outcome === "skipped") {
    return `${head}>\n      <skipped message="${escaped(seen.reason)}"/>\n    </testcase>\n`;
  }
  const text = [sentence, section, "", ...seen.byHand].join("\n");
  const element = seen.outcome === "failed" ? "failure" : "error";
  return `${head}>\n      <${element} message="${escaped(seen.reason)}">${
    escaped(text)
  }</${element}>\n    </testcase>\n`;
}

const ENTITIES: Record<string, string> = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };

// deno-lint-ignore no-control-regex
const NOT_IN_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/gu;

function escaped(text: string): string {
  return text.replace(NOT_IN_XML, "\ufffd").replace(/[<>&"]/g, (character) => ENTITIES[character]!);
}
