/**
 * Plugins by names with a prefix, as programs, as `type` and as `ipam.type`: what moby/buildkit's image has in its PATH.
 * And CNI calls by names that are no plugin's.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { pluginNames } from "../../src/plugins/table.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type Call, cni, PATCHBAY } from "../support/plugins.ts";
import { statusOf } from "../support/resident-status.ts";
import { openResident, untilServed } from "../support/served.ts";
import { scriptPlugins } from "../support/script-plugins.ts";

// The machines that need a resident start it themselves.
delete process.env.PATCHBAY_TEST_RESIDENT;

const bin = mkdtempSync(`${tmpdir()}/prefixed-`);
afterAll(() => rmSync(bin, { recursive: true }));
const links = ["bridge", "loopback", "host-local", "firewall"].map((plugin) => `buildkit-cni-${plugin}`);
// Not a plugin's name, in spite of its end: `cnibridge`. A driver of netavark's is no CNI plugin.
const strangers = [
  "cilium-cni",
  "cnibridge",
  "bridge-",
  "local",
  "netavark-bridge",
  "patchbay",
  "cnitool",
  "netavark",
];
for (const name of [...links, ...strangers, ...pluginNames.map((plugin) => `x-${plugin}`), "my-bridge"]) {
  symlinkSync(PATCHBAY, `${bin}/${name}`);
}

/** As buildkitd writes them. */
const bridge = {
  type: "buildkit-cni-bridge",
  bridge: "buildkit0",
  isDefaultGateway: true,
  ipMasq: true,
  ipam: { type: "buildkit-cni-host-local", ranges: [[{ subnet: "10.10.0.0/16" }]] },
};
const firewall = { type: "buildkit-cni-firewall", ingressPolicy: "same-bridge" };
const loopback = { type: "buildkit-cni-loopback" };

test.each([false, true])("buildkit's plugins by their names, through a resident: %p", async (isServed) => {
  await using machine = await openMachine();
  await using _ = isServed ? await openResident(machine) : undefined;
  if (isServed) await untilServed(machine);
  const container = await machine.container("c1");
  const [lo, main] = [network(machine, loopback, bin), network(machine, bridge, bin)];
  const round = async (work: () => Promise<void> = async () => {}) => {
    await lo.add(container, { ifName: "lo" });
    const prevResult = await main.add(container);
    const last = network(machine, firewall, bin, { own: () => ({ prevResult }) });
    await last.add(container);
    await work();
    for (const one of [main, last]) await one.check(container);
    for (const one of [lo, main, last]) expect(await one.call("STATUS", undefined)).toMatchObject({ code: 0 });
    for (const one of [last, main]) await one.del(container);
    await lo.del(container, { ifName: "lo" });
  };
  await round();
  const moment = await quietMoment(machine), before = isServed ? (await statusOf(machine)).served : 0;
  await round(async () => {
    expect(await machine.sh("ip -4 address show eth0", { in: container })).toContain("inet 10.10.0.");
    expect(await machine.sh("ip link show buildkit0")).toContain("UP");
    expect(await machine.sh("iptables-save -t filter || true")).toContain("CNI-FORWARD");
  });
  expect(await leftSince(moment, machine)).toEqual([]);
  // Three calls of ADD, two of CHECK, three of STATUS, three of DEL.
  if (isServed) expect((await statusOf(machine)).served - before).toBeGreaterThanOrEqual(11);
  // GC gives back what nobody called DEL for.
  await main.add(container);
  await main.gc([]);
  expect(await machine.sh("ip -o link show", { in: container })).not.toContain("eth0");
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("each plugin after a prefix says that it is itself, without a command and for VERSION", async () => {
  await using machine = await openMachine();
  for (const plugin of pluginNames) {
    const call = (env: Record<string, string>) => machine.run([`${bin}/x-${plugin}`], { env });
    const [about, versions] = [await call({}), await call({ CNI_COMMAND: "VERSION" })];
    expect([about.code, about.stderr]).toEqual([0, expect.stringContaining(`CNI ${plugin} plugin v`)]);
    expect([versions.code, JSON.parse(versions.stdout)]).toEqual([
      0,
      expect.objectContaining({ supportedVersions: expect.arrayContaining(["1.0.0"]) }),
    ]);
  }
});

test.each([false, true])("a CNI call by another name is an error, through a resident: %p", async (isServed) => {
  await using machine = await openMachine();
  await using _ = isServed ? await openResident(machine) : undefined;
  if (isServed) await untilServed(machine);
  const container = await machine.container("c1");
  for (const plugin of strangers) {
    for (const command of ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION", "NOPE"]) {
      const call: Call = { plugin, command, container, conf: { cniVersion: "1.1.0", name: "net", type: plugin } };
      const { code, json, stderr } = await cni(machine, bin, call);
      expect([plugin, command, code, stderr, json]).toEqual([plugin, command, 1, "", {
        code: 999,
        msg: `invalid plugin name: ${plugin}`,
        details: expect.stringContaining("patchbay"),
      }]);
    }
  }
});

test("another program's plugin of such a name is executed, as type and as ipam.type", async () => {
  using scripts = scriptPlugins();
  const leased = { cniVersion: "1.0.0", ips: [{ address: "10.9.0.2/24", gateway: "10.9.0.1" }] };
  scripts.plugin("buildkit-cni-host-local", { ADD: { stdout: leased } });
  scripts.plugin("cnv-tuning", { ADD: { stdout: { cniVersion: "1.0.0" } } });
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const env = { CNI_PATH: `${scripts.directory}/bin:${bin}` };
  const net = network(machine, { ...bridge, cniVersion: "1.0.0" }, bin, { env });
  const { ips } = await net.add(container);
  expect(ips[0].address).toBe("10.9.0.2/24");
  await net.del(container);
  const conflist = { cniVersion: "1.0.0", name: "n", plugins: [{ type: "cnv-tuning" }] };
  await machine.sh("mkdir /run/conf; cat >/run/conf/n.conflist", { stdin: JSON.stringify(conflist) });
  await machine.sh(`${PATCHBAY} add n ${container.netnsPath}`, { env: { ...env, NETCONFPATH: "/run/conf" } });
  expect(scripts.calls()).toEqual(["ADD buildkit-cni-host-local", "DEL buildkit-cni-host-local", "ADD cnv-tuning"]);
});

test("the runtime runs networks with such types, and lint, plan, inspect and gc know whose they are", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const tuning = { type: "x-tuning", sysctl: { "net.ipv4.conf.eth0.arp_filter": "1" } };
  const conflist = { cniVersion: "1.0.0", name: "n", plugins: [bridge, tuning, firewall] };
  await machine.sh("mkdir /run/conf; cat >/run/conf/n.conflist", { stdin: JSON.stringify(conflist) });
  for (const CNI_PATH of [bin, ""]) {
    const patchbay = async (...words: string[]) => {
      const { code, stdout, stderr } = await machine.run([PATCHBAY, ...words], {
        env: { CNI_PATH, NETCONFPATH: "/run/conf" },
      });
      expect([CNI_PATH, words, code, stderr]).toEqual([CNI_PATH, words, 0, ""]);
      return stdout;
    };
    await patchbay("lint", "/run/conf/n.conflist");
    await patchbay("status", "n");
    await patchbay("plan", "n", container.netnsPath);
    await patchbay("add", "n", container.netnsPath);
    expect(await patchbay("inspect", "n")).not.toContain("another program");
    await patchbay("check", "n", container.netnsPath);
    await patchbay("del", "n", container.netnsPath);
    const kept = "find /var/lib/cni/networks/n -maxdepth 1 -name '10.*'; find /run/patchbay -name '*@*'";
    expect(await machine.sh(kept)).toBe("");
  }
});

test("what another program of such a name made is not taken for ours, also beside ours", async () => {
  using scripts = scriptPlugins();
  const made = { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox: "/run/netns/c1" }], ips: [] };
  scripts.plugin("accelerated-bridge", { ADD: { stdout: made } });
  await using machine = await openMachine();
  const container = await machine.container("c1"), theirs = { type: "accelerated-bridge", bridge: "fast0" };
  const networks = { alone: [theirs], beside: [theirs, { ...bridge, bridge: "own0" }], ours: [bridge] };
  await machine.sh("mkdir /run/conf");
  for (const [name, plugins] of Object.entries(networks)) {
    const stdin = JSON.stringify({ cniVersion: "1.0.0", name, plugins });
    await machine.sh(`cat >/run/conf/${name}.conflist`, { stdin });
    const env = { CNI_PATH: `${scripts.directory}/bin:${bin}`, NETCONFPATH: "/run/conf" };
    await machine.sh(`${PATCHBAY} add ${name} ${container.netnsPath} -i ${name}`, { env });
  }
  const others = { plugin: "accelerated-bridge", madeBy: "others", resources: [] };
  const own = expect.objectContaining({ plugin: "bridge", madeBy: "patchbay" });
  for (const CNI_PATH of [`${scripts.directory}/bin:${bin}`, ""]) {
    const seen = async (name: string) => {
      const outcome = await machine.run([PATCHBAY, "inspect", name, "--json"], { env: { CNI_PATH } });
      return JSON.parse(outcome.stdout)[0].plugins;
    };
    expect(await seen("alone")).toEqual([others]);
    expect(await seen("beside")).toEqual([others, own]);
    expect(await seen("ours")).toEqual([own]);
    // Nothing of it is mended, nor made.
    await machine.run([PATCHBAY, "repair", "alone"], { env: { CNI_PATH } });
    expect(await machine.sh("ls /sys/class/net")).not.toContain("fast0");
  }
  // A ledger that is not trusted is ours all the same.
  await machine.sh("chmod 666 /run/patchbay/ours/*");
  const { stdout } = await machine.run([PATCHBAY, "inspect", "ours"]);
  expect(stdout).toContain("its ledger cannot be read or trusted");
});

test("called with arguments, such a name may still be the runtime or a driver of podman's networks", async () => {
  await using machine = await openMachine();
  const version = await machine.run([`${bin}/my-bridge`, "version"]);
  expect([version.code, version.stdout]).toEqual([0, expect.stringContaining("patchbay")]);
  const info = await machine.run([`${bin}/my-bridge`, "info"]);
  expect([info.code, JSON.parse(info.stdout)]).toEqual([
    0,
    expect.objectContaining({ api_version: expect.anything() }),
  ]);
});
