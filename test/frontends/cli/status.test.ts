/** `patchbay status` says how full the pools are, whatever STATUS answers, and fails when one is full. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { KNOWN_VERSIONS } from "../../../src/cni/versions.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { type ScriptPlugins, scriptPlugins } from "../../support/script-plugins.ts";
import { runToEnd } from "../../support/run-to-end.ts";

let at: ScriptPlugins;
beforeEach(() => {
  at = scriptPlugins();
  mkdirSync(`${at.directory}/configs`);
});
afterEach(() => at[Symbol.dispose]());

function status(
  plugins: Record<string, unknown>[],
  changes: Record<string, unknown> = {},
  pluginPath = at.runtime.pluginPath,
) {
  writeFileSync(`${at.directory}/configs/n.conflist`, at.network(plugins, { name: "n", ...changes }).source);
  const options = ["--config-dir", `${at.directory}/configs`, "--plugin-path", pluginPath];
  return runToEnd([PATCHBAY, "status", "n", ...options]);
}

function hostLocal(...subnets: string[]) {
  const ranges = subnets.map((subnet) => [{ subnet }]);
  return { type: "host-local", dataDir: `${at.directory}/leases`, ranges };
}

function lease(...addresses: string[]): void {
  mkdirSync(`${at.directory}/leases/n`, { recursive: true });
  for (const address of addresses) writeFileSync(`${at.directory}/leases/n/${address}`, "c1\r\neth0");
}

const fullPool = (ranges: string) =>
  `patchbay status: no IP addresses available in range set: ${ranges}\n` +
  "  'patchbay ipam list n' lists who has the addresses; 'patchbay gc n --gone' gives back those of containers that " +
  "are gone, and 'patchbay ipam release n ADDRESS' one whose container nobody knows\n";

test("a line for each pool; a full one is a failure, in ADD's words", () => {
  at.plugin("one");
  at.plugin("two");
  lease("10.1.0.2", "10.2.0.2", "fd00::2");
  const ipam = hostLocal("10.1.0.0/24", "10.2.0.0/30", "fd00::/64");
  expect(status([{ type: "one", IPAM: ipam }, { type: "two", ipam: { type: "static" } }])).toEqual({
    code: 1,
    stdout: "addresses 10.1.0.1-10.1.0.254: 252 of 253 free\n" +
      "addresses 10.2.0.1-10.2.0.2: pool full: 0 of 1 free\n" +
      "addresses fd00::1-fd00::ffff:ffff:ffff:ffff: ~2^64 of ~2^64 free\n",
    stderr: fullPool("10.2.0.1-10.2.0.2"),
  });
});

test("the same when STATUS fails, and for networks older than STATUS", () => {
  at.plugin("one", { STATUS: { stdout: { cniVersion: "1.1.0", code: 50, msg: "not now" }, exit: 1 } });
  lease("10.2.0.2");
  const plugin = { type: "one", ipam: hostLocal("10.2.0.0/30") };
  const stdout = "addresses 10.2.0.1-10.2.0.2: pool full: 0 of 1 free\n";
  expect(status([plugin])).toEqual({
    code: 1,
    stdout,
    stderr: `patchbay status: not now\n${fullPool("10.2.0.1-10.2.0.2")}`,
  });
  expect(status([plugin], { cniVersion: "1.0.0" })).toEqual({
    code: 1,
    stdout,
    stderr: fullPool("10.2.0.1-10.2.0.2"),
  });
});

test("the pools of the plugin that flannel delegates to", () => {
  at.plugin("flannel");
  lease("10.9.1.2");
  const subnetFile = `${at.directory}/subnet.env`, flannel = { type: "flannel", subnetFile, ipam: hostLocal() };
  expect(status([flannel]).stdout).toBe("ready\n");
  writeFileSync(
    subnetFile,
    "FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
  );
  expect(status([flannel]).stdout).toBe("addresses 10.9.1.1-10.9.1.254: 252 of 253 free\n");
});

test("ready: where there are no pools, also for ranges from capabilities, and for wrong ranges", () => {
  at.plugin("one");
  for (const ipam of [hostLocal(), hostLocal("nonsense"), null]) {
    expect(status([{ type: "one", ipam }])).toEqual({ code: 0, stdout: "ready\n", stderr: "" });
  }
});

test("our own plugins are asked in every version", () => {
  const rows: [plugin: Record<string, unknown>, problem: string][] = [
    [{ type: "ptp", ipam: hostLocal("10.1.0.0/31") }, "10.1.0.0/31"],
    [{ type: "ptp", ipam: { type: "nosuch" } }, '"nosuch"'],
    [{ type: "bridge", vlan: 5000 }, "5000"],
    [{ type: "portmap" }, "must be called as chained plugin"],
    [{ type: "nosuch" }, '"nosuch"'],
  ];
  for (const cniVersion of [undefined, ...KNOWN_VERSIONS]) {
    expect(status([{ type: "ptp", ipam: hostLocal("10.1.0.0/24") }], { cniVersion }, "").code).toBe(0);
    for (const [plugin, problem] of rows) {
      expect([cniVersion, status([plugin], { cniVersion }, "")]).toEqual([
        cniVersion,
        { code: 1, stdout: expect.anything(), stderr: expect.stringContaining(problem) },
      ]);
    }
  }
  const firewall = [{ type: "loopback" }, { type: "firewall" }];
  expect(status(firewall, { cniVersion: "0.3.1" }, "")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("incompatible CNI versions"),
  });
});

test("all networks without a name, each with its own", () => {
  at.plugin("one");
  lease("10.2.0.2");
  status([{ type: "one", ipam: hostLocal("10.2.0.0/30") }]);
  writeFileSync(`${at.directory}/configs/m.conflist`, at.network(["one"], { name: "m" }).source);
  writeFileSync(`${at.directory}/configs/o.conflist`, "{");
  const all = (...options: string[]) =>
    Bun.spawnSync([PATCHBAY, "status", "--config-dir", `${at.directory}/configs`, ...options], {
      env: { CNI_PATH: at.runtime.pluginPath },
    });
  const { exitCode, stdout, stderr } = all();
  expect([exitCode, String(stdout)]).toEqual([
    1,
    "m: ready\nn: addresses 10.2.0.1-10.2.0.2: pool full: 0 of 1 free\n",
  ]);
  expect(String(stderr)).toContain("patchbay status: network n: no IP addresses available in range set: 10.2.0.1-");
  expect(String(stderr)).toContain(`patchbay status: ${at.directory}/configs/o.conflist: error parsing`);
  const none = { pools: [], problems: [], differences: [], warnings: [] };
  expect(JSON.parse(String(all("--json").stdout))).toEqual([
    { ...none, network: "m", state: "ok" },
    {
      ...none,
      network: "n",
      state: "full",
      pools: [expect.objectContaining({ free: 0 })],
      problems: [expect.stringContaining("no IP addr")],
    },
    { ...none, network: `${at.directory}/configs/o.conflist`, state: "broken", problems: [expect.any(String)] },
  ]);
});

test("one network at a time", () => {
  at.plugin("one");
  writeFileSync(`${at.directory}/configs/n.conflist`, at.network(["one"], { name: "n" }).source);
  const { exitCode, stderr } = Bun.spawnSync([PATCHBAY, "status", "n", "junk"]);
  expect([exitCode, String(stderr)]).toEqual([2, expect.stringContaining('"junk" is one too many')]);
});
