/**
 * ovs with `vxlanID`: two hosts with an Open vSwitch each and tunnels between them, and which packets pass.
 *
 * Longer than 300 lines: all tests share the two hosts.
 */
import { $ } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bytesThrough } from "../support/bytes-through.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";

interface Host {
  machine: Machine;
  ovs: OpenVswitch;
  /** The last number of its addresses and of its containers' first. */
  number: number;
}

let one: Host, two: Host;
beforeAll(async () => {
  const machines = [await openMachine(), await openMachine()] as const;
  const [here, there] = machines;
  // One end in each: the machines share nothing else.
  await $`nsenter --net=/proc/${here.pid}/ns/net ip link add wire type veth peer name wire netns ${there.pid}`;
  [one, two] = [await openHost(here, 1), await openHost(there, 2)];
});
afterAll(async () => {
  for (const { machine, ovs } of [one, two]) {
    await ovs[Symbol.asyncDispose]();
    await machine[Symbol.asyncDispose]();
  }
});

/** A userspace datapath sends by a bridge that has the tunnels' own address and the wire as a port. */
async function openHost(machine: Machine, number: number): Promise<Host> {
  const ovs = await startOpenVswitch(machine);
  await ovs.addBridge("br-phy");
  await ovs.vsctl("add-port", "br-phy", "wire");
  await machine.sh(`
    ip link set wire up; ip link set br-phy up
    ip address add 192.0.2.${number}/24 dev br-phy; ip -6 address add fd02::${number}/64 dev br-phy nodad`);
  return { machine, ovs, number };
}

/** A tunnel port to the other host. */
async function addTunnel({ ovs, number }: Host, bridge: string, name: string, options: Options): Promise<void> {
  const { key, tag, remote = `192.0.2.${3 - number}` } = options;
  const settings = [
    "type=vxlan",
    `options:remote_ip="${remote}"`,
    ...key === undefined ? [] : [`options:key=${key}`],
  ];
  await ovs.vsctl(
    "add-port",
    bridge,
    name,
    ...tag === undefined ? [] : [`tag=${tag}`],
    "--",
    ...["set", "interface"],
    name,
    ...settings,
  );
}

interface Options {
  key?: number | string;
  tag?: number;
  remote?: string;
}

const bridges = { count: 0 };

/** A bridge of the test's own on both hosts. */
async function freshBridge(): Promise<string> {
  const name = `ovs${bridges.count++}`;
  for (const { ovs } of [one, two]) await ovs.addBridge(name);
  return name;
}

function netOf({ machine, number }: Host, conf: Record<string, unknown>) {
  const range = (subnet: string, rangeStart: string) => [{ subnet, rangeStart }];
  const ranges = [range("10.20.0.0/24", `10.20.0.${number * 10}`), range("fd20::/64", `fd20::${number}0`)];
  return network(machine, { type: "ovs", ipam: { type: "host-local", ranges }, ...PATIENT, ...conf });
}

const addressOf = ({ ips }: { ips: { address: string }[] }) => ips[0]!.address.replace(/\/.*/, "");

const overheads = [
  { over: "IPv4", remotes: ["192.0.2.2", "192.0.2.1"], mtu: 1450 },
  { over: "IPv6", remotes: ["fd02::2", "fd02::1"], mtu: 1430 },
];

test.each(overheads)(
  "containers of two hosts reach each other over $over, whatever the size",
  async ({ remotes, mtu }) => {
    const bridge = await freshBridge(), conf = { bridge, vxlanID: 42 };
    for (const [index, host] of [one, two].entries()) {
      await addTunnel(host, bridge, `vx-${bridge}`, { key: 42, remote: remotes[index] });
    }
    const [here, there] = [await one.machine.container(), await two.machine.container()];
    const nets = [netOf(one, conf), netOf(two, conf)] as const;
    const results = [await nets[0].add(here), await nets[1].add(there)], address = addressOf(results[0]);
    expect(await ping(two.machine, there, address)).toBe(true);
    expect(await ping(two.machine, there, results[0].ips[1].address.replace(/\/.*/, ""))).toBe(true);
    const from = { machine: two.machine, in: there };
    expect(await bytesThrough({ machine: one.machine, at: here, address }, from, 1_000_000, 20)).toBe(1_000_000);
    const size = async ({ machine }: Host, container: Container) =>
      JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0].mtu;
    expect([await size(one, here), await size(two, there)]).toEqual([mtu, mtu]);
    for (const [index, container] of [here, there].entries()) {
      await nets[index]!.check(container);
      await nets[index]!.del(container);
    }
    for (const { ovs } of [one, two]) await ovs.vsctl("del-br", bridge);
  },
);

test("a tunnel port's tag is the container's VLAN, and what is in another virtual network gets nothing", async () => {
  const bridge = await freshBridge();
  // The same network is another VLAN on the other host.
  await addTunnel(one, bridge, "vx42", { key: 42, tag: 10 });
  await addTunnel(one, bridge, "vx43", { key: 43, tag: 11 });
  await addTunnel(two, bridge, "vx42", { key: 42, tag: 20 });
  await addTunnel(two, bridge, "vx43", { key: 43, tag: 10 });
  const server = await one.machine.container(), net = netOf(one, { bridge, vxlanID: 42 });
  const added = await net.add(server), address = addressOf(added);
  expect(await one.ovs.row("Port", added.interfaces[0].name)).toMatchObject({ tag: 10, vlan_mode: "access" });
  const [peer, stranger, near] = [
    await two.machine.container(),
    await two.machine.container(),
    await one.machine.container(),
  ];
  await netOf(two, { bridge, vxlanID: 42 }).add(peer);
  await netOf(two, { bridge, vxlanID: 43 }).add(stranger);
  const nearest = addressOf(await netOf(one, { bridge, vxlanID: 43 }).add(near));
  expect(await ping(two.machine, peer, address)).toBe(true);
  expect(await ping(two.machine, stranger, address)).toBe(false);
  expect(await ping(one.machine, near, address)).toBe(false);
  // `stranger` and `near` are in one network, so it was not the tunnel that was broken.
  expect(await ping(two.machine, stranger, nearest)).toBe(true);
  await net.check(server);
});

const here = async (bridge: string, conf: Record<string, unknown>) => {
  const { machine, ovs } = one, container = await machine.container();
  const before = await quietMoment(machine), rows = await ovs.rows();
  const net = netOf(one, { bridge, ...conf });
  const { json, code, stderr } = await net.call("ADD", container);
  return {
    container,
    net,
    json,
    code,
    stderr,
    async nothingIsLeft() {
      expect(await leftSince(before, machine, /last_reserved_ip/)).toEqual([]);
      expect(await ovs.rows()).toEqual(rows);
    },
  };
};

test("without a tunnel port ADD is refused, says which one to make, and leaves nothing", async () => {
  const bridge = await freshBridge(), other = await freshBridge();
  // Another network's, another bridge's, and ones whose directions differ.
  await addTunnel(one, bridge, `a-${bridge}`, { key: 41, tag: 3 });
  await addTunnel(one, other, `b-${bridge}`, { key: 42, remote: "192.0.2.7" });
  await addTunnel(one, bridge, `c-${bridge}`, { tag: 4, remote: "192.0.2.8" });
  await one.ovs.vsctl("set", "interface", `c-${bridge}`, "options:in_key=42", "options:out_key=41");
  const { json, nothingIsLeft } = await here(bridge, { vxlanID: 42 });
  expect(json).toMatchObject({
    code: 7,
    msg: `bridge ${bridge} has no tunnel port for "vxlanID": 42`,
    details:
      `make one to each other host, all of them in one VLAN that nothing else has: ovs-vsctl add-port ${bridge} NAME tag=VLAN -- set interface NAME type=vxlan options:remote_ip=ADDRESS options:key=42`,
  });
  await nothingIsLeft();
  // Who does what it says has what it needs.
  const command = json.details.replace(/^.*?ovs-vsctl /, "").replaceAll("NAME", "vxlan42");
  await one.ovs.vsctl(...command.replace("ADDRESS", "192.0.2.9").replace("VLAN", "5").split(" "));
  expect(await here(bridge, { vxlanID: 42 })).toMatchObject({ code: 0 });
});

const refusals: [what: string, ports: Options[], conf: Record<string, unknown>, says: string][] = [
  [
    "another VLAN",
    [{ key: 42, tag: 10 }],
    { vlan: 11 },
    '"vxlanID": 42 is VLAN 10 of the bridge, and "vlan" says another one',
  ],
  [
    "a trunk",
    [{ key: 42, tag: 10 }],
    { trunk: [{ id: 10 }] },
    '"vxlanID": 42 is VLAN 10 of the bridge, and "trunk" says another one',
  ],
  [
    "different tags",
    [{ key: 42, tag: 10 }, { key: 42, tag: 11 }],
    {},
    'the tunnel ports t1 and t2 for "vxlanID": 42 are in different VLANs',
  ],
  [
    "two networks on all VLANs",
    [{ key: 42 }, { key: 43 }],
    {},
    'the container would be in another virtual network than "vxlanID": 42, too: tunnel port t2 with key 43 carries all VLANs, and the container\'s are all VLANs',
  ],
  [
    "another network in the container's VLAN",
    [{ key: 42, tag: 10 }, { key: 43, tag: 10 }],
    {},
    "tunnel port t2 with key 43 carries VLAN 10, and the container's are VLAN 10",
  ],
  [
    "another network in one of its VLANs",
    [{ key: 42 }, { key: 43, tag: 12 }],
    { trunk: [{ minID: 11, maxID: 13 }] },
    "tunnel port t2 with key 43 carries VLAN 12, and the container's are VLANs 11-13 tagged",
  ],
];

test.each(refusals)("refused: %s", async (_, ports, conf, says) => {
  const bridge = await freshBridge();
  for (const [index, port] of ports.entries()) {
    await addTunnel(one, bridge, `t${index + 1}`, { remote: `192.0.2.${20 + index}`, ...port });
  }
  const { json, nothingIsLeft } = await here(bridge, { vxlanID: 42, ...conf });
  expect(json).toMatchObject({ code: 7, msg: expect.stringContaining(says) });
  await nothingIsLeft();
  await one.ovs.vsctl("del-br", bridge);
});

const permitted: [what: string, ports: Options[], conf: Record<string, unknown>, port: Record<string, unknown>][] = [
  ["the tunnel's own VLAN", [{ key: 42, tag: 10 }], { vlan: 10 }, { tag: 10, vlan_mode: "access" }],
  ["a VLAN within the tunnel", [{ key: 42 }], { vlan: 7 }, { tag: 7, vlan_mode: "access" }],
  ["another network elsewhere", [{ key: 42 }, { key: 43, tag: 12 }], { vlan: 7 }, { tag: 7 }],
  ["the number as Open vSwitch reads it, octal", [{ key: "052", tag: 6 }], {}, { tag: 6 }],
  ["the number as Open vSwitch reads it, hexadecimal", [{ key: "0x2A", tag: 6 }], {}, { tag: 6 }],
  ["the number as Open vSwitch reads it, to its end", [{ key: "42e1", tag: 6 }], {}, { tag: 6 }],
  ["flows", [{ key: "flow" }], {}, { tag: ["set", []], vlan_mode: "trunk" }],
  ["flows beside other networks", [{ key: "flow", tag: 9 }, { key: 43, tag: 12 }], {}, { tag: 9 }],
  ["a port of its own beside flows", [{ key: "flow", tag: 9 }, { key: 42, tag: 8 }], {}, { tag: 8 }],
];

test.each(permitted)("accepted: %s", async (_, ports, conf, port) => {
  const bridge = await freshBridge();
  for (const [index, options] of ports.entries()) {
    await addTunnel(one, bridge, `t${index + 1}`, { remote: `192.0.2.${20 + index}`, ...options });
  }
  const { json, net, container } = await here(bridge, { vxlanID: 42, ...conf });
  const [{ name }] = json.interfaces;
  expect(await one.ovs.row("Port", name)).toMatchObject(port);
  expect(await one.ovs.row("Interface", name)).toMatchObject({ external_ids: ["map", [["vxlan-id", "42"]]] });
  await net.check(container);
  await net.del(container);
  await one.ovs.vsctl("del-br", bridge);
});

test("CHECK sees a tunnel port that is gone, in another VLAN, or of another network", async () => {
  const bridge = await freshBridge();
  await addTunnel(one, bridge, "t1", { key: 42, tag: 10, remote: "192.0.2.30" });
  const { container, net } = await here(bridge, { vxlanID: 42 });
  // Without its ledger, the tunnel port alone says the VLAN.
  const looks = [async () => {}, async () => void await one.machine.sh("rm -r /run/patchbay")];
  for (const prepare of looks) {
    await prepare();
    await net.check(container);
    const message = async () => (await net.call("CHECK", container)).json.msg;
    await one.ovs.vsctl("set", "port", "t1", "tag=11");
    expect(await message()).toBe('the tunnel port for "vxlanID": 42 is in VLAN 11, and the container is not');
    await one.ovs.vsctl("set", "port", "t1", "tag=10");
    await addTunnel(one, bridge, "t2", { key: 43, remote: "192.0.2.31" });
    expect(await message()).toContain("tunnel port t2 with key 43 carries all VLANs");
    await one.ovs.vsctl("del-port", "t2");
    await one.ovs.vsctl("set", "interface", "t1", "options:key=44");
    expect(await message()).toContain(`bridge ${bridge} has no tunnel port for "vxlanID": 42`);
    await one.ovs.vsctl("set", "interface", "t1", "options:key=42");
    await one.ovs.vsctl("del-port", "t1");
    expect(await message()).toContain(`bridge ${bridge} has no tunnel port for "vxlanID": 42`);
    await addTunnel(one, bridge, "t1", { key: 42, tag: 10, remote: "192.0.2.30" });
  }
  // Whatever has become of the tunnel.
  await one.ovs.vsctl("del-port", "t1");
  await net.del(container);
  expect(await one.ovs.portsOf(bridge)).toEqual([]);
  await one.ovs.vsctl("del-br", bridge);
});

test("an MTU that does not fit into the tunnel is warned about, and a smaller one counts", async () => {
  const bridge = await freshBridge();
  await addTunnel(one, bridge, "t1", { key: 42, tag: 10 });
  const large = await here(bridge, { vxlanID: 42, mtu: 1500 }),
    small = await here(bridge, { vxlanID: 42, mtu: 1300 });
  expect(large.stderr).toContain('"mtu": 1500: packets of more than 1450 bytes do not fit into the tunnel');
  expect(small.stderr).toBe("");
  const mtus = [large, small].map(async ({ container }) =>
    JSON.parse(await one.machine.sh("ip -j link show eth0", { in: container }))[0].mtu
  );
  expect(await Promise.all(mtus)).toEqual([1500, 1300]);
  await one.ovs.vsctl("del-br", bridge);
});

test("plan says the VLAN and the MTU, or which tunnel port to make, and makes nothing", async () => {
  const bridge = await freshBridge(), { machine, ovs } = one;
  const plugins = [{ type: "ovs", bridge, vxlanID: 42 }];
  await machine.sh(`mkdir -p /run/confs; cat >/run/confs/web.conflist <<'END'
    ${JSON.stringify({ cniVersion: "1.1.0", name: "web", plugins })}
END`);
  const container = await machine.container(), before = await quietMoment(machine), rows = await ovs.rows();
  const plan = async () =>
    await machine.run([PATCHBAY, "plan", "web", container.netnsPath], { env: { NETCONFPATH: "/run/confs" } });
  const refused = await plan();
  expect(refused.code).not.toBe(0);
  expect(refused.stdout + refused.stderr).toContain(`ovs-vsctl add-port ${bridge} NAME tag=VLAN`);
  await addTunnel(one, bridge, "t1", { key: 42, tag: 10 });
  const planned = await plan();
  expect(planned).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`a port of ${bridge} in Open vSwitch, VLAN 10`),
  });
  await ovs.vsctl("del-port", "t1");
  expect(await leftSince(before, machine)).toEqual([]);
  expect(await ovs.rows()).toEqual(rows);
});
