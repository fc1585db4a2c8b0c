/**
 * Follows CONTRIBUTING.md for a new plugin and a new kind of resource: copies the skeletons into a folder of their
 * theme, adds them to the tables, compiles them, and runs them on a link in a test machine.
 */
import { afterAll, expect, test } from "bun:test";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const root = resolve(import.meta.dir, "../..");
const tree = mkdtempSync(join(tmpdir(), "skeleton-"));
afterAll(() => rmSync(tree, { recursive: true }));

function replace(file: string, find: string, text: string): void {
  const before = readFileSync(join(tree, file), "utf8");
  expect(before).toContain(find);
  writeFileSync(join(tree, file), before.replace(find, text));
}

/** A plugin directory that includes the skeleton. */
function builtWithSkeletons(): string {
  for (const name of ["src", "compile", "schemas", "package.json", "tsconfig.json"]) {
    cpSync(join(root, name), join(tree, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  renameSync(join(tree, "src/plugins/skeleton/link-alias"), join(tree, "src/plugins/meta/link-alias"));
  renameSync(join(tree, "src/resources/skeleton/link-alias.ts"), join(tree, "src/resources/link/link-alias.ts"));
  const plugin = "src/plugins/meta/link-alias/link-alias.ts";
  replace(plugin, "resources/skeleton/link-alias.ts", "resources/link/link-alias.ts");
  const row = (file: string, member: string) =>
    `  "link-alias": () => (require("${file}") as typeof import("${file}")).${member},\n`;
  replace(
    "src/plugins/table.ts",
    `  "loopback":`,
    `${row("./meta/link-alias/link-alias.ts", "default")}  "loopback":`,
  );
  replace("src/resources/table.ts", `  "veth":`, `${row("./link/link-alias.ts", "linkAliasKind")}  "veth":`);
  for (const step of ["compile/validators.ts", "compile/build.ts"]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, step], { cwd: tree });
    expect([step, exitCode, exitCode === 0 ? "" : `${stdout}${stderr}`]).toEqual([step, 0, ""]);
  }
  const plugins = join(tree, "plugins");
  mkdirSync(plugins);
  symlinkSync(join(tree, "dist/patchbay"), join(plugins, "link-alias"));
  return plugins;
}

test(
  "the copied skeletons are a working plugin: judged, added, checked, deleted, with and without a ledger",
  async () => {
    const plugins = builtWithSkeletons();
    expect(readFileSync(join(tree, "schemas/link-alias.json"), "utf8")).toContain("link-alias plugin configuration");
    await using machine = await openMachine();
    const container = await machine.container();
    await machine.sh("ip link add eth0 type veth peer name eth1; ip link set eth0 alias before", { in: container });
    const moment = await quietMoment(machine);
    const prevResult = { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: container.netnsPath }] };
    const net = network(machine, { type: "link-alias", alias: "uplink" }, plugins, { own: () => ({ prevResult }) });
    const alias = async () => JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0].ifalias;

    const refused = await net.call("ADD", container, { conf: { alias: "" } });
    expect(refused.json).toMatchObject({ code: 7, msg: `"alias" must have 1 to 255 bytes` });
    for (const ledger of ["kept", "lost"]) {
      expect(await net.add(container)).toMatchObject(prevResult);
      expect(await alias()).toBe("uplink");
      await net.check(container);
      await machine.sh("ip link set eth0 alias other", { in: container });
      expect((await net.call("CHECK", container)).json.msg).toBe(`link eth0 has the alias "other"`);
      await machine.sh("ip link set eth0 alias uplink", { in: container });
      if (ledger === "lost") await machine.sh("rm -r /run/patchbay/*");
      await net.del(container);
      expect([ledger, await alias()]).toEqual([ledger, ledger === "kept" ? "before" : undefined]);
    }
    await machine.sh("ip link set eth0 alias before", { in: container });
    expect(await leftSince(moment, machine)).toEqual([]);
    await machine.removeContainer(container);
    await net.del(container);
  },
  300_000,
);
