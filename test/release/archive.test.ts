/** The archive's units of systemd are those that `patchbay install` writes and knows again. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeArchive } from "../../release/archive.ts";
import { readEdition } from "../../release/edition.ts";
import { openMachine } from "../support/machine.ts";
import { unitHost } from "../support/unit-host.ts";

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "archive-"))));
afterAll(() => rmSync(directory, { recursive: true }));

test("copied to a host, its units are left as they are, and removed with the plugins", async () => {
  const program = join(directory, "program"), units = "/etc/systemd/system";
  writeFileSync(program, "#!/bin/false\n");
  const archive = makeArchive(program, "x64", { edition: readEdition(), work: directory, out: directory });
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  // The machine's directory of plugins is another.
  await machine.sh(`
    mkdir -p ${units}
    tar -xzf ${archive} -C ${units} --strip-components=2 --wildcards '*/systemd/*'
    sed -i s,/opt/cni/bin/,/run/cni/, ${units}/*`);
  const copied = await machine.sh(`cd ${units}; ls`);
  expect(copied).toBe(
    "cni-dhcp.service\ncni-dhcp.socket\npatchbay-node.service\npatchbay.service\npatchbay.socket\n",
  );
  const { code, stdout, asked } = await install("--dhcp", "--resident");
  expect([code, stdout.includes(units)]).toEqual([0, false]);
  expect(asked).toEqual(["enable --now patchbay.socket", "enable --now cni-dhcp.socket"]);
  expect((await install("--uninstall")).code).toBe(0);
  expect(await machine.sh(`ls ${units}`)).toBe("");
});
