/** The start of a container with each engine and network, as bars: the engine's part, and the network's. */
import type { EngineRows, Row } from "./report.ts";

const WIDTH = 760, LEFT = 210, RIGHT = 130, TOP = 60, BAR = 24, GAP = 10;
const ENGINE = "#c9ced6";
const kinds = [["none", "no network", ENGINE], ["ours", "patchbay", "#0b6e99"], [
  "theirs",
  "theirs",
  "#b4530a",
]] as const;

export function picture(engines: readonly EngineRows[]): string {
  const bars = engines.flatMap(({ engine, rows }) =>
    kinds.flatMap(([kind, name, colour]) => {
      const row: Row | undefined = rows[kind];
      return row === undefined ? [] : [{ label: `${engine}, ${name}`, row, colour }];
    })
  );
  const longest = Math.max(...bars.map(({ row }) => row.start.median));
  const x = (ms: number) => ms / longest * (WIDTH - LEFT - RIGHT), height = TOP + bars.length * (BAR + GAP) + GAP;
  const box = (from: number, ms: number, y: number, colour: string) =>
    `<rect x="${(LEFT + x(from)).toFixed(1)}" y="${y}" width="${
      x(ms).toFixed(1)
    }" height="${BAR}" fill="${colour}"/>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    `<text x="20" y="26" font-size="16">Start of a container, until its program runs</text>`,
    `<text x="20" y="46">grey: the engine without a network; in colour: the network's part</text>`,
    ...bars.flatMap(({ label, row, colour }, index) => {
      const y = TOP + index * (BAR + GAP), took = row.start.median;
      const network = Math.min(took, Math.max(0, row.network.start)), middle = y + BAR / 2 + 5;
      return [
        `<text x="${LEFT - 8}" y="${middle}" text-anchor="end">${label}</text>`,
        box(0, took - network, y, ENGINE),
        box(took - network, network, y, colour),
        `<text x="${(LEFT + x(took) + 8).toFixed(1)}" y="${middle}">${took.toFixed(0)} ms, ${
          row.perSecond.toFixed(1)
        } a second</text>`,
      ];
    }),
    "</svg>",
    "",
  ].join("\n");
}
