/** Diagrams and tables as text, at most 100 columns wide. */

export interface Attached {
  name: string;
  hostLink: string;
  /** In CIDR notation. */
  addresses: string[];
  mac: string;
}

const WIDTH = 96;

/** The bridge above its containers, each hanging on the host's end of its veth pair. */
export function diagram(network: { bridge: string; gateways: string[]; attached: Attached[] }): string {
  const { bridge, gateways, attached } = network;
  const columnWidth = Math.floor(WIDTH / attached.length);
  const column = (text: string) => centred(text, columnWidth);
  const across = (line: (one: Attached) => string) => attached.map((one) => column(line(one))).join("").trimEnd();
  const boxes = attached.map(({ name, addresses }) => box([`container ${name}`, "eth0", ...addresses]));
  // The line from the bridge down starts where a container's column has its middle.
  const hanging = attached.map((_, index) => index * columnWidth + Math.floor((columnWidth - 1) / 2));
  const top = box([`bridge ${bridge} on the host`, gateways.join("   ")], WIDTH - 8);
  const bottom = [...` ${" ".repeat(3)}${top.at(-1)!}`];
  for (const at of hanging) bottom[at] = "┬";
  return [
    ...top.slice(0, -1).map((line) => `    ${line}`),
    bottom.join(""),
    across(() => "│"),
    across(({ hostLink }) => hostLink),
    across(() => "│"),
    ...boxes[0]!.map((_, row) =>
      boxes.map((lines) => column(row === 0 ? withStem(lines[0]!) : lines[row]!)).join("").trimEnd()
    ),
    "",
  ].join("\n");
}

function withStem(line: string): string {
  const middle = Math.floor((line.length - 1) / 2);
  return `${line.slice(0, middle)}┴${line.slice(middle + 1)}`;
}

function box(lines: string[], width = Math.max(...lines.map((line) => line.length)) + 6): string[] {
  return [
    `┌${"─".repeat(width - 2)}┐`,
    ...lines.map((line) => `│${centred(line, width - 2)}│`),
    `└${"─".repeat(width - 2)}┘`,
  ];
}

function centred(text: string, width: number): string {
  const before = Math.max(0, Math.floor((width - text.length) / 2));
  return `${" ".repeat(before)}${text}`.padEnd(width);
}

export function table(title: string, rows: string[][]): string {
  const widths = rows[0]!.map((_, index) => Math.max(...rows.map((row) => row[index]!.length)));
  const lines = rows.map((row) => `  ${row.map((cell, index) => cell.padEnd(widths[index]!)).join("   ")}`.trimEnd());
  return [title, ...lines, ""].join("\n");
}
