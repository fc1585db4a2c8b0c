/** docs/ledger.md shows the ledgers that its own network makes: the same kinds of lines with the same keys. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { kindNames } from "../../src/resources/table.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const page = readFileSync(resolve(import.meta.dir, "../../docs/ledger.md"), "utf8");
const blocks = [...page.matchAll(/^```\n([^]*?)^```$/gm)].map(([, block]) => block!);
const network = blocks.find((block) => block.includes('"plugins"'))!;
const ledgers = blocks.filter((block) => block.startsWith('{"patchbay"'));
const [, capabilityArgs, call] = /^export CAP_ARGS='(.*)'\npatchbay (.*)$/m.exec(page)!;
const command = call!.split(" ");

test("the ledgers on the page are what the command on the page leaves", async () => {
  await using machine = await openMachine();
  const { netnsPath } = await machine.container("c1");
  expect(netnsPath).toEndWith(command.at(-1)!);
  await machine.sh("mkdir /run/networks && cat >/run/networks/web.conflist", { stdin: network });
  const env = { NETCONFPATH: "/run/networks", CAP_ARGS: capabilityArgs! };
  const { code, stderr } = await machine.run([PATCHBAY, ...command], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(ledgers.length).toBe(2);
  for (const shown of ledgers) {
    const { network, containerId, ifName, plugin } = JSON.parse(shown.split("\n")[0]!);
    const path = `/run/patchbay/${network}/${containerId}@${ifName}@${plugin}`;
    expect(page).toContain(`\`${path}\``);
    expect(shapes(shown)).toEqual(shapes(await machine.sh(`cat ${path}`)));
  }
  expect(await machine.sh("cd /run/patchbay && find . -type f | wc -l")).toBe(`${ledgers.length}\n`);
});

test("every line of the ledger of bridge is explained", () => {
  const kinds = ledgers[0]!.trim().split("\n").map((line) => JSON.parse(line).kind).filter((kind) => kind);
  expect(kinds.filter((kind) => !page.includes(`\n- \`${kind}\``))).toEqual([]);
  expect(kinds.filter((kind) => !kindNames.includes(kind))).toEqual([]);
});

/** A line's keys in their order, and its kind: names, addresses and the text of `stdin` are of one attachment. */
function shapes(ledger: string): string[] {
  return ledger.trim().split("\n").map((line) => {
    const value = JSON.parse(line);
    return `${value.kind ?? "-"} ${shape(value)}`;
  });
}

function shape(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shape)}]`;
  if (typeof value !== "object" || value === null) return typeof value;
  return `{${Object.entries(value).map(([key, inner]) => `${key}: ${shape(inner)}`).join(", ")}}`;
}
