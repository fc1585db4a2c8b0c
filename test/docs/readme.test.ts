/** The commands in README.md, and those by hand in docs/commands.md, work as printed, in this order, on a fresh machine. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const root = resolve(import.meta.dir, "../..");
const readme = readFileSync(`${root}/README.md`, "utf8");
const commands = readFileSync(`${root}/docs/commands.md`, "utf8");

/** The lines of each block of code under a heading. */
function blocksUnder(heading: string, page = readme): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))!;
  return [...section.matchAll(/^```\n([^]*?)^```$/gm)].map(([, lines]) => lines!);
}

/** Private copies of the directories that the commands write to. */
const privately = `
  mkdir -p /run/etc && cp -a /etc/. /run/etc && mount --bind /run/etc /etc
  mkdir -p /run/bin /run/opt && mount --bind /run/bin /usr/local/bin && mount --bind /run/opt /opt`;

test("Install, and a first network", async () => {
  await using machine = await openMachine();
  await machine.sh(privately);
  // The program has been built: the tests run what `npm run build` left.
  const install = blocksUnder("Install")[0]!.replace("npm run build\n", "").replace("dist/patchbay", PATCHBAY);
  expect(install).toContain("install --bin /usr/local/bin /opt/cni/bin");
  await machine.sh(`cd ${root}\n${install}`);
  const [first, ...others] = blocksUnder("A first network");
  const [byHand, ...more] = blocksUnder("Ports and addresses by hand", commands);
  expect([...others, ...more]).toEqual([]);
  const output = await machine.sh(first!);
  expect(output).toContain('"address": "10.70.0.2/16"');
  expect(output).toContain("1 packets transmitted, 1 received");
  await machine.sh("ip netns add web");
  const { code, stdout, stderr } = await machine.run(["sh", "-ec", `cd ${root}\n${byHand}`]);
  expect([code, stdout, stderr]).toEqual([0, expect.stringContaining('"address": "10.76.0.9/16"'), ""]);
  expect(stdout).toContain('"mac": "02:00:00:00:00:09"');
  expect(await machine.sh("patchbay inspect")).toBe("nothing is attached\n");
  // "Called as cnitool", and the plugins by their names.
  await machine.sh("CNI_PATH=/opt/cni/bin cnitool add first /run/netns/web >/dev/null");
  await machine.sh("patchbay del first /run/netns/web; ip netns del web");
  await machine.sh("patchbay install --uninstall /opt/cni/bin");
  expect(await machine.sh("ls -A /usr/local/bin /opt/cni/bin")).toBe("/opt/cni/bin:\n\n/usr/local/bin:\n");
});

test("the list of commands is what help lists", () => {
  const help = String(Bun.spawnSync([PATCHBAY, "help"]).stdout);
  const listed = [...help.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name]) => name!);
  const rows = [...readme.split("## The plugins")[0]!.matchAll(/^- `(\w+)`: /gm)].map(([, name]) => name!);
  expect(rows.sort()).toEqual(listed.sort());
});
