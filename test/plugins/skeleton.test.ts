/**
 * Follows CONTRIBUTING.md for a new plugin and a new kind of resource: `npm run new` copies the skeletons, the copies
 * pass `npm run check`, and what they are built into runs on a link in a test machine.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyRepository } from "../support/documents.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const tree = mkdtempSync(join(tmpdir(), "skeleton-"));
afterAll(() => rmSync(tree, { recursive: true }));

/** A plugin directory that includes a copy of the skeleton, made by commands alone. */
function builtWithSkeletons(): string {
  copyRepository(tree);
  for (const step of [["compile/new.ts", "plugin", "link-label"], ["compile/check.ts"], ["compile/build.ts"]]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, ...step], { cwd: tree });
    expect([step, exitCode, exitCode === 0 ? "" : `${stdout}${stderr}`]).toEqual([step, 0, ""]);
  }
  const plugins = join(tree, "plugins");
  mkdirSync(plugins);
  symlinkSync(join(tree, "dist/patchbay"), join(plugins, "link-label"));
  return plugins;
}

test(
  "the copied skeletons are a working plugin: judged, added, checked, deleted, with and without a ledger",
  async () => {
    const plugins = builtWithSkeletons();
    expect(readFileSync(join(tree, "schemas/link-label.json"), "utf8")).toContain("link-label plugin configuration");
    await using machine = await openMachine();
    const container = await machine.container();
    await machine.sh("ip link add eth0 type veth peer name eth1; ip link set eth0 alias before", { in: container });
    const moment = await quietMoment(machine);
    const prevResult = { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: container.netnsPath }] };
    const net = network(machine, { type: "link-label", alias: "uplink" }, plugins, { own: () => ({ prevResult }) });
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
