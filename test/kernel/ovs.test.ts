/** ovs: what Open vSwitch's database and the kernel hold, and which packets pass. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bytesThrough } from "../support/bytes-through.ts";
import { leftSince, quietMoment, withoutContainer } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { environmentOf, PATCHBAY, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { ping, serve } from "../support/traffic.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const ovs0 = { type: "ovs", bridge: "ovs0", ipam, ...PATIENT };

interface Stage extends AsyncDisposable {
  machine: Machine;
  ovs: OpenVswitch;
  container(): Promise<Container>;
}

let shared: Stage;
beforeAll(async () => void (shared = await openStage()));
afterAll(async () => await shared[Symbol.asyncDispose]());

async function openStage(): Promise<Stage> {
  const machine = await openMachine(), ovs = await startOpenVswitch(machine);
  await ovs.addBridge("ovs0");
  return {
    machine,
    ovs,
    container: () => machine.container(),
    async [Symbol.asyncDispose]() {
      await ovs[Symbol.asyncDispose]();
      await machine[Symbol.asyncDispose]();
    },
  };
}

const hostEnd = (result: { interfaces: { name: string }[] }) => result.interfaces[0]!.name;

test("a port with the attachment's owner, the VLAN and the number that was asked for; DEL leaves nothing", async () => {
  const { machine, ovs } = shared, container = await shared.container();
  const net = network(machine, { ...ovs0, vlan: 100, mtu: 1400, ofport_request: 77 });
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine), rows = await ovs.rows();
  const args = { args: "IgnoreUnknown=1;K8S_POD_UID=f00;MAC=C2:11:22:33:44:55;OvnPort=web-0" };
  const result = await net.add(container, args), name = hostEnd(result);
  expect(structuredClone(result)).toMatchObject({
    interfaces: [{ name: expect.stringMatching(/^veth[0-9a-f]{8}$/) }, {
      name: "eth0",
      mac: "c2:11:22:33:44:55",
      sandbox: container.netnsPath,
    }],
    ips: [{ address: "10.20.0.3/24", interface: 1 }, { address: "fd20::3/64", interface: 1 }],
  });
  expect(await ovs.portsOf("ovs0")).toEqual([name]);
  const boot = (await machine.sh("cat /proc/sys/kernel/random/boot_id")).trim();
  expect(await ovs.row("Port", name)).toMatchObject({
    tag: 100,
    vlan_mode: "access",
    external_ids: [
      "map",
      [
        ["contIface", "eth0"],
        ["contNetns", container.netnsPath],
        ["contPodUid", "f00"],
        ["owner", "patchbay"],
        ["patchbay-boot", boot],
        ["patchbay-container", `ctr-${container.name}`],
        ["patchbay-network", "net"],
      ],
    ],
  });
  expect(await ovs.row("Interface", name)).toMatchObject({
    ofport: 77,
    external_ids: ["map", [["iface-id", "web-0"]]],
    error: ["set", []],
  });
  const [link] = JSON.parse(await machine.sh("ip -j link show eth0", { in: container }));
  expect(link).toMatchObject({ address: "c2:11:22:33:44:55", mtu: 1400 });
  await net.check(container, args);
  await net.del(container, args);
  expect(await ovs.rows()).toEqual(rows);
  expect(await leftSince(moment, machine, /last_reserved_ip/)).toEqual([]);
});

test("TCP, UDP and SCTP pass within a VLAN, and nothing between two", async () => {
  await using stage = await openStage();
  const { machine } = stage;
  const [one, two, other, neighbour, trunk] = [
    await stage.container(),
    await stage.container(),
    await stage.container(),
    await stage.container(),
    await stage.container(),
  ];
  await network(machine, { ...ovs0, vlan: 5 }).add(one);
  await network(machine, { ...ovs0, vlan: 5 }).add(two);
  for (const container of [other, neighbour]) await network(machine, { ...ovs0, vlan: 6 }).add(container);
  expect(await ping(machine, other, "10.20.0.5")).toBe(true);
  const tagged = network(machine, { ...ovs0, ipam: undefined, trunk: [{ id: 5 }, { minID: 8, maxID: 9 }] });
  const name = hostEnd(await tagged.add(trunk));
  expect(await stage.ovs.row("Port", name)).toMatchObject({ trunks: ["set", [5, 8, 9]], vlan_mode: "trunk" });
  await using server = await serve(machine, one, "all");
  for (const address of ["10.20.0.2", "fd20::2"]) {
    expect(await server.ask(two, address)).toBe(address.replace(/2$/, "3"));
    expect(await ping(machine, other, address)).toBe(false);
  }
  // More than one segment: checksums and segmentation are the links' own work here.
  const receiver = { machine, at: one, address: "10.20.0.2" };
  expect(await bytesThrough(receiver, { machine, in: two }, 3_000_000)).toBe(3_000_000);
  await tagged.check(trunk);
});

test("ADD starts no other program, and asks the database by one connection", async () => {
  const { machine } = shared, container = await shared.container();
  const call = { plugin: "ovs", command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...ovs0 } };
  const env = { ...environmentOf(patchbayPlugins(), call), PATCHBAY_RESIDENT: "off" };
  const traced = [
    "strace",
    "-f",
    "-qq",
    "-e",
    "trace=execve,fork,vfork,connect",
    "-o",
    "/run/trace",
    `${patchbayPlugins()}/ovs`,
  ];
  expect(await machine.run(traced, { env, stdin: stdinOf(call) })).toMatchObject({ code: 0 });
  const trace = await machine.sh("cat /run/trace");
  expect(trace.match(/(execve|fork)\(/g)).toEqual(["execve("]);
  expect(trace.match(/connect\(.*db\.sock/g)).toHaveLength(1);
  await network(machine, ovs0).del(container);
});

test("CHECK says every difference of a port, in ovs-cni's words", async () => {
  const { machine, ovs } = shared, container = await shared.container();
  const net = network(machine, { ...ovs0, vlan: 5 }), name = hostEnd(await net.add(container));
  await ovs.vsctl("set", "port", name, "tag=6");
  expect((await net.call("CHECK", container)).json.msg).toBe("vlan tag mismatch. ovs=6,netconf=5");
  await ovs.vsctl("set", "port", name, "tag=[]", "vlan_mode=trunk", "trunks=7,8");
  expect((await net.call("CHECK", container)).json.msg).toBe(
    "vlan tag mismatch. ovs=nil,netconf=5; vlan mode mismatch. expected=access,real=trunk; trunk mismatch. ovs=[7 8],netconf=[]",
  );
  await ovs.vsctl("del-port", name);
  expect((await net.call("CHECK", container)).json.msg).toBe(`Open vSwitch has no port ${name}`);
  await net.del(container);
});

test("a bridge that is deleted under a container: inspect says it, and repair mends it", async () => {
  const { machine, ovs } = shared, container = await shared.container();
  await ovs.addBridge("ovs1");
  await machine.sh(`mkdir -p /run/confs; cat >/run/confs/web.conflist <<'END'
    ${JSON.stringify({ cniVersion: "1.1.0", name: "web", plugins: [{ ...ovs0, bridge: "ovs1", vlan: 9 }] })}
END`);
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: "/run/confs" } });
  const added = JSON.parse((await patchbay("add", "web", container.netnsPath)).stdout), name = hostEnd(added);
  await ovs.vsctl("del-br", "ovs1");
  expect((await patchbay("inspect")).stdout).toContain("failed to find bridge ovs1");
  const refused = await patchbay("repair", "web", container.netnsPath);
  expect(refused.code).toBe(1);
  expect(refused.stdout + refused.stderr).toContain("ovs-vsctl add-br ovs1");
  await ovs.addBridge("ovs1");
  expect((await patchbay("inspect")).stdout).toContain(`Open vSwitch has no port ${name}`);
  expect(await patchbay("repair", "web", container.netnsPath)).toMatchObject({ code: 0 });
  expect(await ovs.row("Port", name)).toMatchObject({ tag: 9, vlan_mode: "access" });
  expect((await patchbay("check", "web", container.netnsPath)).code).toBe(0);
  await ovs.vsctl("set", "port", name, "tag=10");
  const before = (await ovs.row("Port", name))._uuid;
  expect(await patchbay("repair", "web", container.netnsPath)).toMatchObject({ code: 0 });
  expect(await ovs.row("Port", name)).toMatchObject({ _uuid: before, tag: 9 });
  expect((await patchbay("del", "web", container.netnsPath)).code).toBe(0);
  expect(await ovs.rows()).not.toContain(name);
});

test("GC removes what is not valid and what an earlier boot left, and ADD the latter; others' ports stay", async () => {
  const { machine, ovs } = shared;
  const [kept, lost] = [await shared.container(), await shared.container()];
  const net = network(machine, ovs0);
  const stays = hostEnd(await net.add(kept)), goes = hostEnd(await net.add(lost));
  // Another network's, another owner's, one of a valid attachment in an earlier boot, and one that names no boot.
  const ids = (owner: string, net: string, containerId = "x") =>
    `external_ids={owner=${owner},patchbay-network=${net},patchbay-container=${containerId},contIface=eth0,` +
    "patchbay-boot=former}";
  const port = (name: string, ids: string) =>
    ovs.vsctl("--no-wait", "add-port", "ovs0", name, "--", "set", "port", name, ids);
  await port("of-other-net", ids("patchbay", "other"));
  await port("of-others", ids("somebody", "net"));
  await port("of-former", ids("patchbay", "net", `ctr-${kept.name}`));
  await port("of-no-boot", ids("patchbay", "net").replace(/,patchbay-boot=\w+/, ""));
  await machine.sh(`rm -r /run/patchbay`);
  await net.gc([kept]);
  const left = await ovs.portsOf("ovs0");
  expect(left).toEqual(expect.arrayContaining([stays, "of-other-net", "of-others"]));
  expect(left).not.toContain(goes);
  for (const name of ["of-former", "of-no-boot"]) expect(left).not.toContain(name);
  const another = await shared.container();
  await net.add(another);
  const now = await ovs.portsOf("ovs0");
  expect(now).not.toContain("of-other-net");
  expect(now).toEqual(expect.arrayContaining([stays, "of-others"]));
  await net.del(another);
  await net.del(kept);
  await net.del(lost);
  await ovs.vsctl("del-port", "of-others");
});

test("a container that is gone: its port goes without its namespace", async () => {
  const { machine, ovs } = shared, container = await shared.container();
  const net = network(machine, ovs0), before = await quietMoment(machine), rows = await ovs.rows();
  await net.add(container);
  await machine.removeContainer(container);
  await net.del(container);
  expect(await ovs.rows()).toEqual(rows);
  expect(await leftSince(withoutContainer(before, container), machine, /last_reserved_ip/)).toEqual([]);
});

test("no database: ADD says so, leaves nothing, and DEL succeeds", async () => {
  const { machine } = shared, container = await shared.container(), before = await quietMoment(machine);
  const net = network(machine, { ...ovs0, socket_file: "unix:/run/none.sock" });
  expect((await net.call("ADD", container)).json).toMatchObject({
    code: 11,
    msg: "the database of Open vSwitch cannot be reached: connect /run/none.sock: no such file or directory",
  });
  expect(await leftSince(before, machine, /last_reserved_ip/)).toEqual([]);
  await net.del(container);
});

test("STATUS: the database, the bridge, its datapath, ovs-vswitchd", async () => {
  await using stage = await openStage();
  const { machine, ovs } = stage;
  const status = async (conf = {}) =>
    (await network(machine, { type: "ovs", bridge: "ovs0", ...conf }).call("STATUS", undefined)).json;
  expect(await status()).toBeUndefined();
  expect(await status({ bridge: "none" })).toMatchObject({ code: 50, msg: "failed to find bridge none" });
  expect(await status({ socket_file: "unix:/run/none.sock" })).toMatchObject({
    code: 50,
    msg: expect.stringContaining("/run/none.sock: no such file or directory"),
  });
  ovs.signal("switch", "SIGSTOP");
  expect(await status()).toMatchObject({
    code: 51,
    msg: "ovs-vswitchd does not answer at /var/run/openvswitch/ovs0.mgmt",
  });
  ovs.signal("switch", "SIGCONT");
  expect(await status()).toBeUndefined();
  await ovs.stopSwitch("SIGKILL");
  expect(await status()).toMatchObject({ code: 51 });
  await ovs.vsctl("--no-wait", "add-br", "later");
  expect(await status({ bridge: "later" })).toMatchObject({
    code: 50,
    msg: "bridge later has no datapath: Open vSwitch has not made it",
  });
});
