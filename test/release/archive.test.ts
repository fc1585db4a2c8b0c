/** What the archive has beside the program: units that `patchbay install` writes and knows again, manifests of a cluster. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { makeArchive } from "../../release/archive.ts";
import { readEdition } from "../../release/edition.ts";
import { root } from "../support/documents.ts";
import { openMachine } from "../support/machine.ts";
import { unitHost } from "../support/unit-host.ts";

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "archive-"))));
afterAll(() => rmSync(directory, { recursive: true }));

test("the manifests of a cluster are in it, where docs/cluster.md has them", async () => {
  const program = join(directory, "program"), names = readdirSync(`${root}/release/kubernetes`);
  writeFileSync(program, "#!/bin/false\n");
  const archive = makeArchive(program, "x64", { edition: readEdition(), work: directory, out: directory });
  const inside = `${basename(archive, ".tar.gz")}/kubernetes`;
  expect(Bun.spawnSync(["tar", "-xzf", archive, "-C", directory, inside]).exitCode).toBe(0);
  const unpacked = join(directory, inside);
  expect(readdirSync(unpacked).sort()).toEqual(names.sort());
  for (const name of names) {
    expect(readFileSync(join(unpacked, name), "utf8")).toBe(
      readFileSync(`${root}/release/kubernetes/${name}`, "utf8"),
    );
  }
  const page = await Bun.file(`${root}/docs/cluster.md`).text();
  const applied = [...page.matchAll(/-f (\S+\/([\w-]+\.yaml))/g)].map(([, path, name]) => [path, name!]);
  expect(applied.map(([, name]) => name!).sort()).toEqual(names.sort());
  for (const [path, name] of applied) expect(path).toBe(`kubernetes/${name}`);
});

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
