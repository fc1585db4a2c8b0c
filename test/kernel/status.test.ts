/**
 * STATUS as runtimes call it: with the configuration alone, without the parameters of an ADD; and as root with fewer
 * rights than the host's.
 */
import { expect, test } from "bun:test";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, type MachineOptions, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { serve } from "../support/served-pool.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Call, environmentOf, PATCHBAY, patchbayPlugins, stdinOf } from "../support/plugins.ts";

const ranges = { ranges: [[{ subnet: "10.1.0.0/24" }]] };

/** What each plugin lets the runtime name at ADD alone is left to the runtime. */
const configurations: Record<string, Record<string, unknown>> = {
  bridge: { ipam: { type: "host-local" }, capabilities: { ipRanges: true, mac: true } },
  "host-device": { ipam: { type: "static" }, capabilities: { deviceID: true, ips: true } },
  dummy: { ipam: { type: "static" } },
  ptp: { ipam: { type: "host-local" } },
  macvlan: { master: "lo", ipam: { type: "host-local", ranges: [] } },
  ipvlan: { ipam: { type: "static" } },
  vlan: { master: "lo", vlanId: 5, ipam: { type: "static" } },
  tap: { ipam: { type: "host-local" } },
  "host-local": { ipam: { type: "host-local" } },
  "patchbay-cluster": { ipam: { type: "patchbay-cluster", pool: "lan" }, capabilities: { ips: true } },
  static: { ipam: { type: "static" } },
  portmap: { capabilities: { portMappings: true } },
  bandwidth: { capabilities: { bandwidth: true } },
  tuning: { capabilities: { mac: true } },
  sbr: {},
  vrf: { vrfname: "blue" },
  firewall: {},
  loopback: {},
  flannel: { subnetFile: "/run/subnet.env" },
};

async function openHost(options?: MachineOptions): Promise<Machine> {
  const machine = await openMachine(options);
  await machine.sh(
    "printf 'FLANNEL_NETWORK=10.9.0.0/16\\nFLANNEL_SUBNET=10.9.1.1/24\\nFLANNEL_MTU=1450\\nFLANNEL_IPMASQ=true\\n' > /run/subnet.env",
  );
  await serve(machine);
  return machine;
}

/** This kernel may not have what they make. */
const features: Record<string, Feature> = {
  dummy: "dummy links",
  macvlan: "macvlan links",
  ipvlan: "ipvlan links",
  vlan: "VLAN links",
  vrf: "VRF links",
};

// STATUS of dhcp and ovs depends on a service: test/services/dhcp/plugin/given-back.test.ts, test/kernel/ovs.test.ts.
for (const type of pluginNames.filter((name) => !["dhcp", "ovs"].includes(name))) {
  test.skipIf(lacks(features[type]))(`${type}: nothing that only ADD gets is missed`, async () => {
    await using machine = await openHost();
    const conf = configurations[type];
    expect(conf).toBeDefined();
    const { code, stdout } = await network(machine, { type, ...conf }).call("STATUS", undefined);
    expect([code, stdout]).toEqual([0, ""]);
  });
  if (!lacks(features[type])) continue;
  test(`${type}: what the kernel lacks is said, and nothing is made`, async () => {
    await using machine = await openHost();
    const moment = await quietMoment(machine);
    const { json } = await network(machine, { type, ...configurations[type] }).call("STATUS", undefined);
    const says = type === "vrf" ? expect.stringContaining("CONFIG_NET_VRF") : `this kernel has no ${type} links`;
    expect(json).toMatchObject({ code: 50, msg: says });
    expect(await leftSince(moment, machine)).toEqual([]);
  });
}

test("what the configuration does say is judged", async () => {
  await using machine = await openHost();
  const status = async (ipam: Record<string, unknown>) =>
    (await network(machine, { type: "bridge", ipam: { type: "host-local", ...ipam } }).call("STATUS", undefined))
      .json;
  expect(await status(ranges)).toBeUndefined();
  expect(await status({ ranges: [[{ subnet: "10.1.0.0/31" }]] })).toMatchObject({ code: 7 });
  expect(await status({ ranges: [[]] })).toMatchObject({ code: 7 });
});

test("ADD misses the ranges and the device that STATUS did not", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  for (const type of ["bridge", "host-device"]) {
    const net = network(machine, { type, ...configurations[type] });
    expect((await net.call("ADD", container)).json).toMatchObject({ code: 7 });
  }
});

const lease = { ipam: { type: "host-local", subnet: "10.1.0.0/24" } };
const addressed = { ipam: { type: "static", addresses: [{ address: "10.1.0.2/24" }] } };
const limits = { ingressRate: 800_000, ingressBurst: 800_000, egressRate: 800_000, egressBurst: 800_000 };
const backends = ["iptables", "nftables"];

/** Configurations that ADD takes, those of each plugin. */
const complete: Record<string, Record<string, unknown>[]> = {
  bridge: [
    ...backends.map((ipMasqBackend) => ({ bridge: "br1", ipMasq: true, ipMasqBackend, ...lease })),
    ...lacks("bridge VLAN filtering") ? [] : [{ bridge: "br2", vlan: 5, ...lease }],
  ],
  "host-device": [{ device: "spare" }],
  dummy: [addressed],
  ptp: backends.map((ipMasqBackend) => ({ ipMasq: true, ipMasqBackend, ...lease })),
  macvlan: [{ master: "up0", ...lease }],
  ipvlan: [{ master: "up0", ...lease }],
  vlan: [{ master: "up0", vlanId: 5, ...lease }],
  tap: [lease],
  "host-local": [lease],
  "patchbay-cluster": [{ ipam: { type: "patchbay-cluster", pool: "lan" } }],
  static: [addressed],
  dhcp: [{ ipam: { type: "dhcp" } }],
  ovs: [{ bridge: "ovs0", ...lease }],
  portmap: backends.map((backend) => ({
    backend,
    runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] },
  })),
  bandwidth: [limits, { ...limits, unshapedSubnets: ["10.2.0.0/16"] }],
  tuning: [{ sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" } }],
  sbr: [{}],
  vrf: [{ vrfname: "blue" }],
  firewall: backends.map((backend) => ({ backend, ingressPolicy: "same-bridge" })),
  loopback: [{}],
  flannel: [{ name: "flannel", subnetFile: "/run/subnet.env" }],
};

const without = (right: string) => {
  return ["setpriv", `--bounding-set=-${right}`, `--inh-caps=-${right}`, "--no-new-privs", "--"];
};
const callers: Record<string, { isRootless: boolean; command: string[] }> = {
  "root without CAP_SYS_ADMIN": { isRootless: false, command: without("sys_admin") },
  "root without CAP_NET_ADMIN": { isRootless: false, command: without("net_admin") },
  "root of a user namespace": { isRootless: true, command: [] },
  "root of a user namespace without CAP_SYS_ADMIN": { isRootless: true, command: without("sys_admin") },
};

for (const [caller, { isRootless, command }] of Object.entries(callers)) {
  test(`${caller}: what STATUS fails for, ADD fails for`, async () => {
    await using host = await openHost();
    await using machine = await openHost({ isRootless });
    const bin = patchbayPlugins();
    const run = async (where: Machine, call: Call, rights: string[] = []) => {
      const conf = { cniVersion: "1.1.0", name: "net", type: call.plugin, ...call.conf as object };
      const options = { stdin: stdinOf({ ...call, conf }), env: environmentOf(bin, call) };
      return await where.run([...rights, `${bin}/${call.plugin}`], options);
    };
    const links =
      "ip link add up0 up type veth peer name up1; ip link set up1 up; ip link add spare type veth peer name other";
    await Promise.all([host.sh(links), machine.sh(links)]);
    for (const plugin of pluginNames) {
      for (const conf of complete[plugin]!) {
        const status = await run(machine, { plugin, command: "STATUS", conf }, command);
        // What the host lacks, root with all rights misses too.
        if (status.code === 0 || status.stdout === (await run(host, { plugin, command: "STATUS", conf })).stdout) {
          continue;
        }
        const container = await machine.container(), isChained = loadPlugin(plugin)!.missingPrevResult !== undefined;
        const prevResult = isChained
          ? await network(machine, { type: "bridge", ...lease }).add(container)
          : undefined;
        const added = await run(
          machine,
          { plugin, command: "ADD", conf: { ...conf, prevResult }, container },
          command,
        );
        const [asked, tried] = [status, added].map(({ code, stdout }) => ({ code, because: reasonIn(stdout) }));
        expect([plugin, tried]).toEqual([plugin, asked]);
      }
    }
  });
}

test.each(["sys_admin", "net_admin"])("what fails without CAP_%s says that it is missing", async (right) => {
  await using machine = await openHost();
  const bin = patchbayPlugins(), failed: string[] = [];
  await machine.sh("ip link add up0 up type veth peer name up1; ip link set up1 up");
  for (const plugin of pluginNames) {
    // It has no service here.
    if (plugin === "dhcp" && right === "net_admin" || plugin === "ovs") continue;
    const container = await machine.container(), isChained = loadPlugin(plugin)!.missingPrevResult !== undefined;
    const prevResult = isChained ? await network(machine, { type: "bridge", ...lease }).add(container) : undefined;
    const conf = {
      cniVersion: "1.1.0",
      name: "net",
      type: plugin,
      ...complete[plugin]![0],
      device: "up1",
      prevResult,
    };
    const call: Call = { plugin, command: "ADD", conf, container };
    const options = { stdin: stdinOf(call), env: environmentOf(bin, call) };
    const { code, stdout } = await machine.run([...without(right), `${bin}/${plugin}`], options);
    if (code === 0) continue;
    failed.push(plugin);
    const { msg, details } = JSON.parse(stdout);
    const missing = `this needs root, or a user namespace of its own: uid 0 has not CAP_${right.toUpperCase()}`;
    expect([plugin, msg, details]).toEqual([
      plugin,
      expect.any(String),
      expect.stringMatching(new RegExp(`(^|; )${missing}$`)),
    ]);
  }
  expect(failed).toContain(right === "sys_admin" ? "dhcp" : "bridge");
});

test("host-local says why no leases can be kept where they should be, in the kernel's words", async () => {
  await using machine = await openHost();
  // The checkout may be where only root gets to.
  const bin = "/run/bin", program = `${bin}/host-local`;
  await machine.sh(
    `mkdir ${bin}; touch ${program} /run/file; mount --bind ${PATCHBAY} ${program}; mkdir -m 700 /run/own`,
  );
  const nobody = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"];
  const cases: [as: string[], dataDir: string, reason: string | undefined][] = [
    [[], "/run/own/none", undefined],
    [nobody, "/run/none", "open /run: permission denied"],
    [nobody, "/run/own", "stat /run/own/net/.patchbay: permission denied"],
    [[], "/run/file", "open /run/file: not a directory"],
    [[], "/run/own/there", "open /run/own/there/net: not a directory"],
  ];
  await machine.sh("mkdir /run/own/there; touch /run/own/there/net");
  for (const [as, dataDir, reason] of cases) {
    const conf = { cniVersion: "1.1.0", name: "net", type: "host-local", ipam: { ...lease.ipam, dataDir } };
    const call: Call = { plugin: "host-local", command: "STATUS", conf };
    const { stdout } = await machine.run([...as, program], { stdin: stdinOf(call), env: environmentOf(bin, call) });
    const said = stdout === "" ? undefined : JSON.parse(stdout).details.split("; ")[0];
    expect([dataDir, said]).toEqual([dataDir, reason]);
  }
});

/** The kernel's words, at the end of the message. */
function reasonIn(document: string): string {
  return document === "" || JSON.parse(document).msg === undefined ? "" : JSON.parse(document).msg.split(": ").at(-1);
}
