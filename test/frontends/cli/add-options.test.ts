/**
 * `patchbay add` by hand: ports, addresses, MAC address and rates as options, in the words of the hook, and a process's
 * namespace as `pid:N`.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { commandsOn } from "../../support/commands.ts";
import { CONFIGS, type Hooked, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine, c1: Container, moment: Moment;

const { patchbay } = commandsOn(() => machine, () => CONFIGS);
const left = () =>
  leftSince(moment, machine, /last_reserved_ip|file \/run\/(bundles|plugins|networks)|networks\/ending\/\.patchbay/);

const bridge = (network: number, capabilities = {}) => ({
  type: "bridge",
  bridge: `br${network}`,
  capabilities,
  ipam: { type: "host-local", subnet: `10.9.${network}.0/24`, routes: [{ dst: "0.0.0.0/0" }] },
});
const portmap = { type: "portmap", backend: "nftables", capabilities: { portMappings: true } };

beforeAll(async () => {
  machine = await openMachine();
  c1 = await machine.container("c1");
  await writeNetwork(machine, "all", [
    bridge(0, { ips: true, mac: true }),
    portmap,
    { type: "bandwidth", capabilities: { bandwidth: true } },
  ]);
  await writeNetwork(machine, "none", [bridge(1)]);
  await writeNetwork(machine, "ending", [bridge(2)]);
  expect(await patchbay(["add", "all", "c1", "--ports", "1:1", "--ingress", "1G"])).toMatchObject({ code: 0 });
  expect(await patchbay(["del", "all", "c1"])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await patchbay(["add", "ending", "c1"])).toMatchObject({ code: 0 });
  expect(await patchbay(["del", "ending", "c1"])).toEqual({ code: 0, stdout: "", stderr: "" });
  moment = await quietMoment(machine);
});
afterAll(() => machine[Symbol.asyncDispose]());

const portMappings = [
  { hostPort: 8080, containerPort: 80, protocol: "tcp" },
  { hostPort: 53, containerPort: 5353, protocol: "udp", hostIP: "10.9.0.1" },
];

describe("options in place of CAP_ARGS", () => {
  const options: [option: string[], capability: Record<string, unknown>][] = [
    [["--ports", "8080:80,10.9.0.1:53:5353/udp"], { portMappings }],
    [["--ports", "8080:80", "--ports", "10.9.0.1:53:5353/udp"], { portMappings }],
    [["--ip", "10.9.0.77"], { ips: ["10.9.0.77"] }],
    [["--mac", "02-00-00-00-00-0A"], { mac: "02:00:00:00:00:0a" }],
    [["--ingress", "100M"], { bandwidth: { ingressRate: 1e8, ingressBurst: 1e7 } }],
    [["--egress", "800k"], { bandwidth: { egressRate: 8e5, egressBurst: 524_288 } }],
    [["--ip=10.9.0.78", "--egress=1G", "--ports=1:2/sctp"], {
      ips: ["10.9.0.78"],
      bandwidth: { egressRate: 1e9, egressBurst: 1e8 },
      portMappings: [{ hostPort: 1, containerPort: 2, protocol: "sctp" }],
    }],
  ];

  test.each(options)("%j are %j", async (words, capabilities) => {
    const steady = (text: string) => text.replace(/veth[0-9a-f]{8}/g, "veth").replace(/(..:){5}../g, "MAC");
    const inspected = async (args: string[], env = {}) => {
      expect(await patchbay(["add", "all", "c1", ...args], env)).toMatchObject({ code: 0, stderr: "" });
      // Without the words: the record has them.
      expect(await patchbay(["check", "all", "c1"])).toEqual({ code: 0, stdout: "", stderr: "" });
      const { stdout } = await patchbay(["inspect", "all", "c1"]);
      const links = await machine.sh("ip -br link show eth0", { in: c1 });
      expect(await patchbay(["del", "all", "c1"])).toEqual({ code: 0, stdout: "", stderr: "" });
      expect(await left()).toEqual([]);
      return { stdout, links };
    };
    const byOptions = await inspected(words), CAP_ARGS = JSON.stringify(capabilities);
    // Which address is next depends on the last.
    const plain = (text: string) =>
      capabilities["ips"] === undefined ? steady(text).replaceAll(/10\.9\.0\.\d+\/24/g, "NEXT") : steady(text);
    expect(plain(byOptions.stdout)).toBe(plain((await inspected([], { CAP_ARGS })).stdout));
    if (capabilities["mac"] !== undefined) expect(byOptions.links).toContain("02:00:00:00:00:0a");
  });

  test("they win over CAP_ARGS, one capability at a time; plan takes them, too", async () => {
    const CAP_ARGS = JSON.stringify({ portMappings: [{ hostPort: 1, containerPort: 1 }], ips: ["10.9.0.80"] });
    const { stdout } = await patchbay(["plan", "all", "c1", "--ports", "8080:80"], { CAP_ARGS });
    expect(stdout).toContain("port 8080/tcp → 80 of 10.9.0.80/24");
    expect(stdout).not.toContain("port 1/");
  });

  test("check and del pass what ADD had, to plugins of others as well", async () => {
    await machine.sh("mkdir -p /run/plugins; cat >/run/plugins/seen; chmod +x /run/plugins/seen", {
      stdin: `#!/bin/sh
cat >/run/plugins/$CNI_COMMAND
echo '{"cniVersion":"1.1.0"}'
`,
    });
    await writeNetwork(machine, "seen", [{ type: "seen", capabilities: { portMappings: true } }]);
    const env = { CNI_PATH: "/run/plugins" };
    await patchbay(["add", "seen", "c1", "--ports", "8080:80"], env);
    for (const verb of ["check", "del"]) {
      expect(await patchbay([verb, "seen", "c1"], env)).toEqual({ code: 0, stdout: "", stderr: "" });
      const { runtimeConfig } = JSON.parse(await machine.sh(`cat /run/plugins/${verb.toUpperCase()}`));
      expect(runtimeConfig).toEqual({ portMappings: [portMappings[0]] });
    }
  });

  const wrong: [network: string, words: string[], says: string][] = [
    ["all", ["--ports", "80"], `--ports: "80" is wrong; ports have the form`],
    ["all", ["--ports", "8080:80,99999:1"], `--ports: "99999:1" is wrong; ports are numbers`],
    [
      "all",
      ["--ip", "10.9.0.300"],
      `--ip: "10.9.0.300" is wrong; it is not an IP address, with or without a prefix length`,
    ],
    ["all", ["--mac", "02:00"], `--mac: "02:00" is wrong; it is no MAC address`],
    ["all", ["--ingress", "100m"], `--ingress: "100m" is wrong; a rate is`],
    ["all", ["--egress", "-1"], `--egress: "-1" is wrong; a rate is`],
    ...[["ports", "1:1", "portMappings"], ["ip", "10.9.0.9", "ips"], ["mac", "02:00:00:00:00:01", "mac"], [
      "ingress",
      "1M",
      "bandwidth",
    ], ["egress", "1M", "bandwidth"]].map(([option, value, capability]): [string, string[], string] => [
      "none",
      [`--${option}`, value!],
      `--${option}: no plugin of network none takes them; a plugin that does needs "capabilities": {"${capability}": true}`,
    ]),
  ];
  test.each(wrong)("network %s refuses %j, and nothing is made", async (network, words, says) => {
    for (const command of ["add", "plan"]) {
      const { code, stdout, stderr } = await patchbay([command, network, "c1", ...words]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toStartWith(`patchbay ${command}: ${says}`);
    }
    expect(await left()).toEqual([]);
  });
});

describe("pid:N", () => {
  let web: Hooked;
  beforeEach(async () => {
    web = await startHooked(machine, "web");
  });
  afterEach(() => web.end());

  test("names the namespace of a process for every command", async () => {
    const name = `pid:${web.pid}`;
    expect(await patchbay(["plan", "all", name])).toMatchObject({ code: 0, stderr: "" });
    expect(await patchbay(["add", "all", name])).toMatchObject({ code: 0, stderr: "" });
    expect(await web.inside("ip -br link show eth0")).toContain("UP");
    expect(await patchbay(["check", "all", name])).toEqual({ code: 0, stdout: "", stderr: "" });
    for (const command of ["inspect", "repair"]) {
      const { code, stdout } = await patchbay([command, "all", name, "--json"]);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject([{ netnsPath: `/proc/${web.pid}/ns/net`, state: "ok" }]);
    }
    expect(await patchbay(["gc", "all", "--valid", `${name}/eth0`, "--dry-run"])).toEqual({
      code: 0,
      stdout: "nothing would be deleted\n",
      stderr: "",
    });
    expect(await patchbay(["del", "all", name])).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(await left()).toEqual([]);
  });

  test("of a process that ends meanwhile, nothing is left", async () => {
    // A plugin that ends the process: whoever has its number from then on is another one.
    await machine.sh("mkdir -p /run/plugins; cat >/run/plugins/ending; chmod +x /run/plugins/ending", {
      stdin: `#!/bin/sh
cat >/run/plugins/got
echo "$CNI_COMMAND $CNI_NETNS" >>/run/plugins/calls
[ $CNI_COMMAND = DEL ] || kill -KILL ${web.pid}
while grep -qs "State:.[^Z]" /proc/${web.pid}/status; do :; done
echo '{"cniVersion":"1.1.0"}'
`,
    });
    await machine.sh(`ln -sf ${PATCHBAY} /run/plugins/bridge; ln -sf ${PATCHBAY} /run/plugins/host-local`);
    await writeNetwork(machine, "ending", [bridge(2), { type: "ending" }]);
    const name = `pid:${web.pid}`, CNI_PATH = "/run/plugins";
    expect(await patchbay(["add", "ending", name], { CNI_PATH })).toEqual({
      code: 1,
      stdout: "",
      stderr: `the attachment is taken back: process ${web.pid} has ended\n`,
    });
    // Not in a namespace that the number leads to by now.
    expect(await machine.sh("cat /run/plugins/calls")).toBe(`ADD /proc/${web.pid}/ns/net\nDEL \n`);
    expect(await left()).toEqual([]);
  });

  test("of no process, of this very namespace, and what is no number", async () => {
    await web.end();
    const refused: [name: string, says: string][] = [
      [`pid:${web.pid}`, `there is no process ${web.pid}`],
      ["pid:4294967295", "there is no process 4294967295"],
      [`pid:${machine.pid}`, "should not be the same"],
      ["pid:0", "/run/netns/pid:0"],
      ["pid:", "/run/netns/pid:"],
      ["pid:-1", "/run/netns/pid:-1"],
      ["pid:1x", "/run/netns/pid:1x"],
    ];
    for (const [name, says] of refused) {
      const { code, stdout, stderr } = await patchbay(["add", "all", name]);
      expect({ name, code, stdout, stderr }).toEqual({
        name,
        code: 1,
        stdout: "",
        stderr: expect.stringContaining(says),
      });
    }
    expect(await left()).toEqual([]);
  });
});
