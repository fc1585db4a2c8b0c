/** The report: the figures as text, and the machine they were measured on. */
import { readFileSync } from "node:fs";
import { arch, cpus, loadavg, release, totalmem } from "node:os";
import type { Row } from "./bench.ts";
import { VERSION } from "../src/process/version.ts";
import { command } from "./machine.ts";
import type { Summary } from "./statistics.ts";

export type Environment = Record<
  "processor" | "memory" | "kernel" | "system" | "versions" | "scratch" | "load" | "date",
  string
>;

export function environment(scratch: string): Environment {
  const asked = Bun.spawnSync(["dpkg-query", "-W", "-f", "${Version}", "containernetworking-plugins"]);
  const goPlugins = asked.exitCode === 0 ? asked.stdout.toString() : "(not installed)";
  return {
    processor: `${cpus().length} × ${cpus()[0]?.model.trim()} (${arch()})`,
    memory: `${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    kernel: release(),
    system: readFileSync("/etc/os-release", "utf8").match(/^PRETTY_NAME="(.*)"$/m)?.[1] ?? "unknown",
    versions:
      `patchbay ${VERSION} on Bun ${Bun.version}; Go plugins: Debian containernetworking-plugins ${goPlugins}`,
    scratch: `leases on ${command(["stat", "-f", "-c", "%T", scratch]).trim()}`,
    load: `${loadNow()} before`,
    date: new Date().toISOString().slice(0, 10),
  };
}

/** The load average of the last minute. Other work on the machine distorts the figures. */
export function loadNow(): string {
  return loadavg()[0]!.toFixed(1);
}

export function ratio(row: Row): number | undefined {
  return row.against && row.ours.median / row.against.median;
}

function verdict(row: Row): string {
  const reached = ratio(row);
  if (reached === undefined || row.target === undefined) return "";
  return `${reached <= row.target ? "met" : "MISSED"} (≤ ${row.target})`;
}

const figure = (value: number) => value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const cells = (summary: Summary | undefined) =>
  summary === undefined ? ["", ""] : [figure(summary.median), figure(summary.p90)];

const WIDTHS = [54, 4, 8, 8, 8, 8, 7, 0];

function line(columns: string[]): string {
  return columns.map((text, index) =>
    index === 0 || index === columns.length - 1 ? text.padEnd(WIDTHS[index]!) : text.padStart(WIDTHS[index]!)
  ).join(" ").trimEnd();
}

export function formatRow(row: Row): string {
  const reached = ratio(row);
  const remarks = [verdict(row), row.againstWhat && `against ${row.againstWhat}`, row.note].filter(Boolean).join(
    "; ",
  );
  return line([
    row.name,
    row.unit,
    ...cells(row.ours),
    ...cells(row.against),
    reached === undefined ? "" : reached < 0.1 ? reached.toFixed(4) : reached.toFixed(2),
    remarks === "" ? "" : ` ${remarks}`,
  ]);
}

export function formatReport(about: Environment, rows: Row[], quick: boolean): string {
  const met = rows.filter((row) => row.target !== undefined);
  const reached = met.filter((row) => ratio(row)! <= row.target!);
  return [
    "Whole processes from posix_spawn to wait4, all sides in turn and in random order, medians. Ours goes through a",
    "resident that has served a hundred calls of the kind; the rows called alone run each call in its own process.",
    ...quick ? ["SMOKE MODE: the figures below mean nothing."] : [],
    "",
    ...Object.entries(about).map(([name, value]) => `${name.padEnd(10)} ${value}`),
    "",
    line(["", "", "ours", "p90", "Go", "p90", "ratio", " target"]),
    ...rows.map(formatRow),
    "",
    ...met.length > 0 ? [`${reached.length} of ${met.length} targets met`, ""] : [],
  ].join("\n");
}
