/** Cost of host-local's ADD over the number of leases, as an SVG. Both axes are logarithmic. */
import type { Row } from "./bench.ts";

const WIDTH = 760, HEIGHT = 420;
const LEFT = 70, RIGHT = 150, TOP = 50, BOTTOM = 60;

export function picture(rows: Row[]): string {
  const points = rows.filter((row) => row.leases !== undefined && row.name.endsWith("ADD"));
  const lines = [
    {
      name: "Go host-local",
      colour: "#b4530a",
      values: points.map((row) => [row.leases!, row.against!.median] as const),
    },
    { name: "patchbay", colour: "#0b6e99", values: points.map((row) => [row.leases!, row.ours.median] as const) },
  ];
  const all = lines.flatMap(({ values }) => values);
  const [fewest, most] = decades(all.map(([leases]) => leases));
  const [least, longest] = decades(all.map(([, ms]) => ms));
  const x = (leases: number) => LEFT + scale(leases, fewest, most) * (WIDTH - LEFT - RIGHT);
  const y = (ms: number) => HEIGHT - BOTTOM - scale(ms, least, longest) * (HEIGHT - TOP - BOTTOM);
  const text = (at: [number, number], words: string, extra = "") =>
    `<text x="${at[0].toFixed(0)}" y="${at[1].toFixed(0)}" ${extra}>${words}</text>`;
  const rule = (x1: number, y1: number, x2: number, y2: number) =>
    `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="#ddd"/>`;
  const bottom = HEIGHT - BOTTOM;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text([LEFT, 26], "host-local ADD: time of the whole process over the leases there are", 'font-size="16"'),
    ...powers(fewest, most).flatMap((leases) => [
      rule(x(leases), TOP, x(leases), bottom),
      text([x(leases), bottom + 20], leases.toLocaleString("en"), 'text-anchor="middle"'),
    ]),
    ...powers(least, longest).flatMap((ms) => [
      rule(LEFT, y(ms), WIDTH - RIGHT, y(ms)),
      text([LEFT - 8, y(ms) + 4], `${ms} ms`, 'text-anchor="end"'),
    ]),
    text([(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16], "leases in the subnet", 'text-anchor="middle"'),
    ...lines.flatMap(({ name, colour, values }) => {
      const [lastLeases, lastMs] = values.at(-1)!;
      const path = values.map(([leases, ms]) => `${x(leases).toFixed(1)},${y(ms).toFixed(1)}`).join(" ");
      return [
        `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2.5"/>`,
        ...values.map(([leases, ms]) =>
          `<circle cx="${x(leases).toFixed(1)}" cy="${y(ms).toFixed(1)}" r="3.5" fill="${colour}"/>`
        ),
        text(
          [x(lastLeases) + 10, y(lastMs) + 4],
          `${name}: ${lastMs.toFixed(lastMs < 10 ? 1 : 0)} ms`,
          `fill="${colour}"`,
        ),
      ];
    }),
    "</svg>",
    "",
  ].join("\n");
}

/** The powers of ten around the values. */
function decades(values: number[]): [number, number] {
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  return [low, Math.max(low * 10, 10 ** Math.ceil(Math.log10(Math.max(...values))))];
}

function powers(low: number, high: number): number[] {
  const found: number[] = [];
  for (let value = low; value <= high; value *= 10) found.push(value);
  return found;
}

function scale(value: number, low: number, high: number): number {
  return (Math.log10(value) - Math.log10(low)) / (Math.log10(high) - Math.log10(low));
}
