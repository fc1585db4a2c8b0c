/**
 * What `add` refuses, `plan` refuses in the same words; what `add` makes without effect, too.
 *
 * Longer than 300 lines: a table, one entry a refusal.
 */
import { expect, test } from "bun:test";
import { legacyPath } from "../support/legacy-iptables.ts";
import { lacks } from "../support/kernel-features.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";

const subnet = "10.1.0.0/24";
const ipam = { type: "host-local", subnet };
const tuning = { type: "tuning" }, loopback = { type: "loopback" };
const bridge = (more: object = {}) => ({ type: "bridge", bridge: "br0", isGateway: true, ipam, ...more });
const portmap = (backend: string, more: object = {}) => ({
  type: "portmap",
  backend,
  capabilities: { portMappings: true },
  ...more,
});
const port = (hostPort: unknown, more: object = {}) => ({ portMappings: [{ hostPort, containerPort: 80, ...more }] });

interface Row {
  plugins: { type: string; [key: string]: unknown }[];
  message: string;
  /** What both say behind it. */
  details?: string;
  /** Run on the host before. */
  host?: string;
  /** Run in the container before. */
  inside?: string;
  /** Capability arguments of another container that is attached before. */
  other?: object;
  capabilities?: object;
  args?: string;
  ifName?: string;
  cniVersion?: string;
  needs?: "ipvlan links" | "VLAN links" | "VRF links";
  /** It is refused on a kernel that lacks this. */
  lacking?: "bridge VLAN filtering";
}

const rows: Row[] = [
  // The call.
  { plugins: [loopback], ifName: "much-too-long-name", message: "interface name is too long" },
  { plugins: [portmap("nftables")], message: "must be called as chained plugin" },
  { plugins: [loopback, { type: "firewall" }], cniVersion: "0.3.1", message: "incompatible CNI versions" },
  { plugins: [bridge()], inside: "ip link add eth0 type veth peer name other", message: "already exists" },
  // Capability arguments and CNI_ARGS.
  {
    plugins: [bridge(), portmap("nftables")],
    capabilities: { portMappings: [{ hostPort: 1, containerPort: 1 }, { hostPort: 1, containerPort: 2 }] },
    message: "host port 1/tcp is mapped twice; to 1 and to 2; leave out one of the two",
  },
  { plugins: [bridge(), portmap("nftables")], capabilities: port("x"), message: "portMappings" },
  {
    plugins: [bridge({ capabilities: { mac: true } })],
    capabilities: { mac: "hello" },
    message: "address hello: invalid MAC",
  },
  { plugins: [bridge(), { ...tuning, capabilities: { mac: true } }], capabilities: { mac: "x" }, message: "invalid" },
  {
    plugins: [bridge({ capabilities: { ips: true } })],
    capabilities: { ips: ["10.2.0.9"] },
    message: "failed to allocate all requested IPs: 10.2.0.9",
  },
  {
    plugins: [bridge({ capabilities: { ips: true } })],
    capabilities: { ips: ["10.1.0.1"] },
    message: "failed to allocate for range 0: requested ip 10.1.0.1 is subnet's gateway",
  },
  {
    plugins: [bridge({ capabilities: { ips: true } })],
    capabilities: { ips: ["10.1.0.9"] },
    other: { ips: ["10.1.0.9"] },
    message: "failed to allocate for range 0: requested IP address 10.1.0.9 is not available in range set",
  },
  { plugins: [bridge()], args: "IgnoreUnknown=1;IP=x", message: "invalid IP address x" },
  {
    plugins: [bridge({ capabilities: { ipRanges: true } })],
    capabilities: { ipRanges: [[{ subnet: "10.3.0.1/24" }]] },
    message: "Network has host bits set",
  },
  {
    plugins: [{ type: "ptp", ipam: { type: "static" } }],
    args: "IP=10.1.0.9",
    message: "the 'ip' field is expected to be in CIDR notation",
  },
  // The state of the machine.
  {
    plugins: [bridge(), portmap("nftables")],
    capabilities: port(8080),
    other: port(8080),
    message: "host port 8080/tcp is taken by container other, interface eth0 of network net",
  },
  {
    plugins: [bridge(), portmap("iptables", { externalSetMarkChain: "THEIRS" })],
    capabilities: port(8080),
    message: 'externalSetMarkChain "THEIRS" is not in the table nat',
  },
  {
    plugins: [bridge({ ipam: { type: "host-local", subnet: "10.1.0.0/30" } })],
    other: {},
    message: "failed to allocate for range 0: no IP addresses available in range set",
  },
  {
    plugins: [bridge({ ipam: { ...ipam, resolvConf: "/nosuch" } })],
    message: "open /nosuch",
  },
  {
    plugins: [bridge()],
    host: "ip link add br0 type veth peer name br1",
    message: '"br0" already exists but is not a bridge',
  },
  {
    plugins: [bridge()],
    host: "ip link add br0 type bridge; ip address add 10.9.0.1/16 dev br0",
    message: '"br0" already has an IP address different from 10.1.0.1/24',
  },
  { plugins: [{ type: "macvlan", master: "nosuch", ipam }], message: 'failed to lookup master "nosuch"' },
  {
    plugins: [{ type: "macvlan", master: "m0", mtu: 9000, ipam }],
    host: "ip link add m0 type veth peer name m1; ip link set m0 up",
    message: "invalid MTU 9000, must be [0, master MTU(1500)]",
  },
  {
    plugins: [{ type: "vlan", master: "m0", vlanId: 5, mtu: 9000, ipam }],
    host: "ip link add m0 type veth peer name m1; ip link set m0 up",
    message: "invalid MTU 9000",
    needs: "VLAN links",
  },
  {
    plugins: [{ type: "ipvlan", master: "nosuch", ipam }],
    message: 'failed to lookup master "nosuch"',
    needs: "ipvlan links",
  },
  {
    plugins: [{ type: "host-device", device: "nosuch" }],
    message: "failed to find host device",
  },
  {
    plugins: [{ type: "ptp", ipam: { type: "static", addresses: [{ address: "10.1.0.2/24" }] } }],
    message: "IPAM gave no gateway for 10.1.0.2/24",
  },
  { plugins: [{ type: "tap", bridge: "nosuch" }], message: "failed to get bridge nosuch" },
  {
    plugins: [loopback, { ...tuning, sysctl: { "net.core.somaxconn": "9" } }],
    host: "mount -t tmpfs none /etc; mkdir -p /etc/cni/tuning; echo '^net.ipv4.*$' > /etc/cni/tuning/allowlist.conf",
    message: "somaxconn",
  },
  ...["", "ip link add br0 type bridge"].flatMap((host): Row[] =>
    [{ vlan: 5 }, { vlanTrunk: [{ id: 5 }] }].map((vlans) => ({
      plugins: [bridge(vlans)],
      host,
      message: "this kernel has no bridges that filter VLANs (CONFIG_BRIDGE_VLAN_FILTERING)\n",
      lacking: "bridge VLAN filtering",
    }))
  ),
  // What the kernel refuses.
  ...["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"].flatMap((mac): Row[] =>
    ([
      [[{ type: "bridge" }]],
      [[{ type: "tap" }]],
      [[{ type: "macvlan", master: "m0" }], "ip link add m0 type veth peer name m1; ip link set m0 up"],
      [[bridge(), tuning]],
    ] as [Row["plugins"], string?][]).map(([plugins, host]) => ({
      plugins: plugins.with(-1, { ...plugins.at(-1)!, capabilities: { mac: true } }),
      host,
      capabilities: { mac },
      message: "cannot assign requested address",
      details: `; the MAC address ${mac} is ${mac.startsWith("00") ? "no address" : "a group's, and no link's"}\n`,
    }))
  ),
  ...[["10.1.0.2/24", "10.1.0.2/24"], ["fd00::2/64", "fd00::2/64"], ["fd00::2/64", "fd00::2/48"]].map((
    addresses,
  ): Row => ({
    plugins: [bridge({
      isGateway: false,
      ipam: { type: "static", addresses: addresses.map((address) => ({ address })) },
    })],
    message: `failed to add IP addr ${addresses[1]} to "eth0": file exists`,
  })),
  ...[
    [{ dst: "10.5.0.1/16" }, "invalid argument"],
    [{ dst: "10.5.0.0/16", gw: "10.9.0.1" }, "network is unreachable"],
    [{ dst: "10.5.0.0/16", gw: "fd00::1" }, "network is unreachable"],
    [{ dst: "fd05::/16", gw: "10.1.0.1" }, "numerical result out of range"],
    [{ dst: "fd05::/16", gw: "fd09::1" }, "no route to host"],
  ].flatMap(([route, reason]) =>
    ["bridge", "ptp"].map((type): Row => ({
      plugins: [{ type, ipam: { ...ipam, ranges: [[{ subnet: "fd00::/64" }]], routes: [route] } }],
      message: `${reason}`,
    }))
  ),
  {
    plugins: [bridge({
      ipam: { ...ipam, routes: [{ dst: "10.9.0.0/16", gw: "10.1.0.1" }, { dst: "10.5.0.0/16", gw: "10.9.0.1" }] },
    })],
    message: "network is unreachable",
  },
  {
    plugins: [bridge({
      ipam: { ...ipam, routes: [{ dst: "10.9.0.0/16", gw: "0.0.0.0" }, { dst: "10.5.0.0/16", gw: "10.9.0.1" }] },
    })],
    message: "network is unreachable",
  },
  ...["bridge", "ptp"].map((type): Row => ({
    plugins: [{ type, ipam: { ...ipam, routes: [{ dst: "0.0.0.0/0" }, { dst: "0.0.0.0/0", gw: "10.1.0.1" }] } }],
    message: "failed to add route '0.0.0.0/0 via 10.1.0.1 dev eth0': file exists",
  })),
  ...["net.ipv4.nosuch", "net.ipv4.conf.IFNAME.nosuch"].map((key): Row => ({
    plugins: [bridge(), { ...tuning, sysctl: { [key]: "1" } }],
    message: `nosuch: no such file or directory; this kernel has no such key`,
  })),
  ...["::1/64", "ff02::5/64"].map((address): Row => ({
    plugins: [{ type: "bridge", ipam: { type: "static", addresses: [{ address }] } }],
    message: `failed to add IP addr ${address} to "eth0": `,
  })),
  ...["all", "default"].flatMap((ifName) =>
    ["bridge", "tap"].map((type): Row => ({ plugins: [{ type }], ifName, message: "invalid argument" }))
  ),
  ...[67, 65536].flatMap((mtu) =>
    ["bridge", "ptp", "tap"].map((type): Row => ({ plugins: [{ type, mtu, ipam }], message: "invalid argument" }))
  ),
  {
    plugins: [{ type: "host-device", device: "lo" }],
    message: 'failed to move link "lo": RTM_NEWLINK lo: invalid argument',
  },
  {
    plugins: [{ type: "host-device", device: "br7" }],
    host: "ip link add br7 type bridge",
    message: 'failed to move link "br7": RTM_NEWLINK br7: invalid argument',
  },
  ...[{ type: "ptp", ipam: { ...ipam, subnet: "10.2.0.0/24" } }, { type: "bridge", bridge: "br1" }, { type: "tap" }]
    .map((
      second,
    ): Row => ({
      plugins: [bridge(), second],
      message: "already exists",
      details: "; an earlier plugin of the network makes it\n",
    })),
  {
    plugins: [bridge(), { type: "firewall", backend: "firewalld" }],
    message: "firewalld cannot be reached: there is no D-Bus system bus",
    details: '\n  start firewalld, or set "backend" of the plugin firewall to "iptables" or "nftables"\n',
  },
  ...["isolated", "same-bridge"].flatMap((ingressPolicy) => {
    const firewall = { type: "firewall", ingressPolicy }, fd00 = "fd00:1::/64";
    return [
      {
        plugins: [bridge({ isGateway: false, ipam: { ...ipam, ranges: [[{ subnet: fd00 }]] } }), firewall],
        host: `
          ip link add br0 up type bridge; ip address add 10.1.0.1/24 dev br0
          ip link add br0.7 up type veth peer name port7; ip link set port7 master br0 up
          ip route add ${fd00} dev br0.7`,
        message: "come and go by br0 and br0.7; give the container addresses behind one link",
      },
      {
        plugins: [bridge(), firewall],
        host: "ip link add red up type vrf table 10; ip link add br0 type bridge; ip link set br0 master red up",
        message: "br0 is part of red",
        needs: "VRF links",
      },
    ] satisfies Row[];
  }),
  { plugins: [bridge({ ipam: {} }), { type: "sbr" }], message: "No IP addresses supplied on interface: eth0" },
  { plugins: [{ type: "flannel", subnetFile: "/nosuch" }], message: "/nosuch" },
];

async function configure(machine: Machine, { plugins, cniVersion = "1.1.0" }: Pick<Row, "plugins" | "cniVersion">) {
  const list = JSON.stringify({ cniVersion, name: "net", plugins });
  await machine.sh(`mkdir -p /run/net.d; cat > /run/net.d/net.conflist <<'end'\n${list}\nend`);
}

function call(
  machine: Machine,
  command: "add" | "plan",
  netnsPath: string,
  { capabilities = {}, args = "", ifName = "eth0", id = "c", env: more }: Partial<Row> & {
    id?: string;
    env?: Record<string, string>;
  },
) {
  const options = ["--config-dir", "/run/net.d", "--ifname", ifName, "--container-id", id];
  const env = { CAP_ARGS: JSON.stringify(capabilities), CNI_ARGS: args, ...more };
  return machine.run([PATCHBAY, command, ...options, "net", netnsPath], { env });
}

for (const row of rows) {
  const { plugins, message, host, inside, other, needs, lacking } = row;
  const title = `${plugins.map(({ type }) => type).join(", ")}: ${message}`;
  test.skipIf(lacks(needs) || (lacking !== undefined && !lacks(lacking)))(title, async () => {
    await using machine = await openMachine();
    const container = await machine.container();
    if (host !== undefined) await machine.sh(host);
    if (inside !== undefined) await machine.sh(inside, { in: container });
    await configure(machine, row);
    if (other !== undefined) {
      const before = await call(machine, "add", (await machine.container()).netnsPath, {
        capabilities: other,
        id: "other",
      });
      expect([before.code, before.stderr]).toEqual([0, ""]);
    }
    const planned = await call(machine, "plan", container.netnsPath, row);
    const added = await call(machine, "add", container.netnsPath, row);
    expect([added.code, added.stdout + added.stderr]).toEqual([1, expect.stringContaining(message)]);
    expect([planned.code, planned.stderr]).toEqual([1, expect.stringContaining(message)]);
    // Both say why and what to do, once.
    if (row.details === undefined) return;
    for (const { stderr } of [planned, added]) {
      expect(stderr).toContain(row.details);
      expect(stderr.match(/^patchbay /gm)).toHaveLength(1);
      expect(stderr).toMatch(/\n {2}\S.*\n$/);
    }
  });
}

for (const datapath of ["netdev", "system"]) {
  const next = [
    { type: "firewall", ingressPolicy: "isolated" },
    ...datapath === "netdev" ? [{ type: "bandwidth", egressRate: 8000, egressBurst: 8000 }] : [],
  ];
  test.skipIf(datapath === "system" && lacks("Open vSwitch's datapath")).each(next)(
    `ovs, datapath ${datapath}, $type: has no effect`,
    async (plugin) => {
      await using machine = await openMachine();
      await using ovs = await startOpenVswitch(machine);
      await ovs.vsctl("add-br", "ovs0", "--", "set", "bridge", "ovs0", `datapath_type=${datapath}`);
      const container = await machine.container();
      await configure(machine, { plugins: [{ type: "ovs", bridge: "ovs0", ipam, ...PATIENT }, plugin] });
      for (const command of ["plan", "add"] as const) {
        const { code, stdout, stderr } = await call(machine, command, container.netnsPath, {});
        expect([command, code, stdout + stderr]).toEqual([command, 1, expect.stringContaining(" has no effect")]);
      }
    },
  );
}

test("what can be added is planned without an obstacle", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip link add br0 type bridge; ip link add m0 type veth peer name m1; ip link set m0 up");
  for (
    const plugins of [
      [bridge({ isDefaultGateway: true }), portmap("nftables"), portmap("iptables"), tuning, { type: "sbr" }],
      [{ type: "macvlan", master: "m0", mtu: 1400, ipam }],
      [{ type: "host-device", device: "m1" }],
      [{ type: "ptp", ipam }],
      ...["bridge", "ptp"].map((type) => [{
        type,
        ...type === "bridge" ? { isDefaultGateway: true } : {},
        ipMasq: true,
        mtu: 1280,
        ipam: {
          ...ipam,
          ranges: [[{ subnet: "fd00::/64" }]],
          routes: [
            { dst: "0.0.0.0/0" },
            { dst: "::/0" },
            { dst: "0.0.0.0/0", priority: 7 },
            { dst: "10.5.0.0/16" },
            { dst: "fd05::/16", gw: "fe80::1" },
            { dst: "10.1.0.0/24" },
          ],
        },
      }, { ...tuning, sysctl: { "net.ipv4.conf.IFNAME.log_martians": "1", "net.core.somaxconn": "9" } }]),
      [{
        type: "bridge",
        ipam: { type: "static", addresses: [{ address: "10.1.0.2/24" }, { address: "10.1.0.2/25" }] },
      }],
    ]
  ) {
    await configure(machine, { plugins });
    const takesPorts = plugins.some((plugin) => plugin.type === "portmap");
    for (const command of ["plan", "add"] as const) {
      const { code, stderr } = await call(machine, command, container.netnsPath, {
        capabilities: takesPorts ? port(8080) : {},
      });
      expect([plugins, command, code, stderr]).toEqual([plugins, command, 0, ""]);
    }
    const del = [PATCHBAY, "del", "--config-dir", "/run/net.d", "--container-id", "c", "net", container.netnsPath];
    expect(await machine.run(del)).toMatchObject({ code: 0, stderr: "" });
    await machine.sh("ip address flush dev br0; ip link del cni0 2>/dev/null || true");
  }
});

const web = port(8080).portMappings[0]!;
/** What a second container asks for, when another one has 8080/tcp of all addresses, and whether that never works. */
const seconds: [mapping: object, isDead: boolean][] = [
  [web, true],
  [{ ...web, containerPort: 81 }, true],
  [{ ...web, hostIP: "10.1.0.1" }, true],
  [{ ...web, hostPort: 8081 }, false],
  [{ ...web, protocol: "udp" }, false],
];
const ofFirst = [web, { ...web, hostPort: 53, protocol: "sctp" }, { ...web, hostPort: 54, hostIP: "10.1.0.1" }];

for (const [form, env] of [["nf_tables", undefined], ["the older tables", { PATH: legacyPath() }]] as const) {
  test(`iptables in ${form}: plan and inspect tell the second holder of a port`, async () => {
    await using machine = await openMachine();
    const [one, two] = [await machine.container(), await machine.container()];
    await configure(machine, { plugins: [bridge({ isDefaultGateway: true }), portmap("iptables")] });
    const told = "host port 8080/tcp leads to container one of network net, whose rule comes first: " +
      "that container gets the connections, this one none";
    const inspect = async (id: string) => (await machine.run([PATCHBAY, "inspect", "net", id], { env })).stdout;
    const first = { id: "one", capabilities: { portMappings: ofFirst }, env };
    expect(await call(machine, "add", one.netnsPath, first)).toMatchObject({ code: 0, stderr: "" });
    for (const [mapping, isDead] of seconds) {
      const what = JSON.stringify(mapping), second = { id: "two", capabilities: { portMappings: [mapping] }, env };
      const planned = await call(machine, "plan", two.netnsPath, second);
      expect([what, planned.code, planned.stderr]).toEqual([what, 0, isDead ? `patchbay plan: ${told}\n` : ""]);
      const added = await call(machine, "add", two.netnsPath, second);
      expect([what, added.code, added.stderr]).toEqual([what, 0, ""]);
      expect([what, (await inspect("two")).includes(told)]).toEqual([what, isDead]);
      expect(await inspect("one")).not.toContain("comes first");
      for (const command of ["check", "del"]) {
        const words = [command, "--config-dir", "/run/net.d", "--container-id", "two", "net", two.netnsPath];
        const { code, stderr } = await machine.run([PATCHBAY, ...words], { env });
        expect([what, command, code, stderr.includes(told)]).toEqual(
          command === "check" && isDead ? [what, command, 1, true] : [what, command, 0, false],
        );
      }
    }
    // Runtimes ask every network of a container for the same ports.
    const again = { ...first, ifName: "eth1" };
    expect(await call(machine, "add", one.netnsPath, again)).toMatchObject({ code: 0, stderr: "" });
    for (const mapping of ofFirst.slice(1)) {
      const second = { id: "two", capabilities: { portMappings: [mapping] }, env };
      expect((await call(machine, "plan", two.netnsPath, second)).stderr).toContain("whose rule comes first");
      const elsewhere = { ...mapping, hostIP: "10.1.0.2" };
      const apart = { id: "two", capabilities: { portMappings: [elsewhere] }, env };
      const { stderr } = await call(machine, "plan", two.netnsPath, apart);
      expect(stderr.includes("whose rule comes first")).toBe(mapping.hostPort === 53);
    }
  });
}
