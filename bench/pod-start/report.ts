/** The figures of `npm run pod-start`, as data and as text. */
import type { Environment } from "../report.ts";
import { isWithinNoise, summarise, type Summary } from "../statistics.ts";
import type { Kind } from "./place.ts";

export interface Samples {
  /** From the engine's call until the container's program says that it runs. */
  start: number[];
  /** From the end of its input until the engine has removed it. */
  end: number[];
  /** Containers whose links or rules stayed. */
  left: number;
}

export interface Row {
  start: Summary;
  end: Summary;
  /** That can be started one after another. */
  perSecond: number;
  /** What a start and an end take longer than without a network, in ms. */
  network: { start: number; end: number };
  /** The network's part of a start. */
  share: number;
  /** Containers whose links or rules stayed. */
  left: number;
}

export interface EngineRows {
  engine: string;
  version: string;
  /** Whether a resident served our plugins' calls. */
  byResident: boolean;
  /** Where theirs is. */
  theirs: string | undefined;
  rows: { none: Row; ours: Row; theirs?: Row };
}

export function rowsOf({ none, ours, theirs }: Partial<Record<Kind, Samples>>): EngineRows["rows"] {
  const without = { start: summarise(none!.start).median, end: summarise(none!.end).median };
  const row = (samples: Samples): Row => {
    const start = summarise(samples.start), end = summarise(samples.end);
    const network = { start: start.median - without.start, end: end.median - without.end };
    const perSecond = 1000 / start.median, share = network.start / start.median;
    return { start, end, network, perSecond, share, left: samples.left };
  };
  return { none: row(none!), ours: row(ours!), ...theirs !== undefined && { theirs: row(theirs) } };
}

const WIDTHS = [24, 9, 9, 9, 14, 9, 9, 14];
const NOISE = "within noise";
const line = (cells: readonly string[]) =>
  cells.map((cell, index) => index === 0 ? cell.padEnd(WIDTHS[0]!) : cell.padStart(WIDTHS[index]!)).join(" ")
    .trimEnd();

export function formatRows(about: Environment, engines: readonly EngineRows[]): string {
  const ms = (value: number) => value.toFixed(value < 10 ? 1 : 0);
  const cells = (name: string, { start, end, perSecond, network, share }: Row, none?: Row) => {
    const costs = none === undefined || isWithinNoise(start, none.start)
      ? [none === undefined ? "" : NOISE, ""]
      : [ms(network.start), `${(100 * share).toFixed(0)} %`];
    const ending = none === undefined ? [] : [isWithinNoise(end, none.end) ? NOISE : ms(network.end)];
    return line([
      `  ${name}`,
      ms(start.median),
      ms(start.p90),
      perSecond.toFixed(1),
      ...costs,
      ms(end.median),
      ...ending,
    ]);
  };
  return [
    "Containers of an engine, one after another, all kinds in turn and in random order, medians in milliseconds.",
    "start: from the engine's call until the container's program runs. end: from the end of its input until the",
    "engine has removed it. network: what that takes longer than without a network.",
    "",
    ...Object.entries(about).map(([name, value]) => `${name.padEnd(10)} ${value}`),
    "",
    line(["", "start", "p90", "a second", "network", "share", "end", "network"]),
    ...engines.flatMap(({ engine, version, byResident, theirs, rows }) => [
      `${engine} (${version})`,
      cells("no network", rows.none),
      cells(byResident ? "ours, by a resident" : "ours", rows.ours, rows.none),
      ...rows.theirs === undefined
        ? []
        : [cells("theirs", rows.theirs, rows.none), ...remarks(theirs!, rows.ours, rows.theirs)],
    ]),
    "",
  ].join("\n");
}

function remarks(path: string, ours: Row, theirs: Row): string[] {
  const ratio = (ours.start.median / theirs.start.median).toFixed(2), { left, start } = theirs;
  const isTold = !isWithinNoise(ours.start, theirs.start) || !isWithinNoise(theirs.start, ours.start);
  const comparison = isTold
    ? `a start with ours takes ${ratio} of one with theirs`
    : `which of the two takes longer is ${NOISE}`;
  return [
    `  theirs is ${path}; ${comparison}`,
    ...left > 0 ? [`  theirs left links or rules of ${left} of ${start.runs} containers`] : [],
  ];
}
