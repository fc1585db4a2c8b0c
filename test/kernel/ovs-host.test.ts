/** The host beside a userspace datapath of Open vSwitch: no packet of a container reaches it, at any time. */
import { expect, test } from "bun:test";
import { type Container, type Machine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATIENT } from "../support/open-vswitch.ts";
import { openOvsStage } from "../support/ovs-stage.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const ovs0 = { type: "ovs", bridge: "ovs0", ipam, ...PATIENT };

test("the host neither answers nor forwards what the switch has", async () => {
  await using stage = await openOvsStage();
  const { machine } = stage, container = await machine.container();
  await machine.sh("ip address replace 10.99.0.1/32 dev lo; ip address replace fd99::1/128 dev lo");
  const net = network(machine, { ...ovs0, vlan: 300 });
  const { interfaces: [{ name }] } = await net.add(container);
  await machine.sh("ip route add default dev eth0; ip -6 route add default dev eth0", { in: container });
  const [{ address: mac }] = JSON.parse(await machine.sh(`ip -j link show ${name}`));
  expect(await machine.sh(`ip -6 -br address show dev ${name}`)).toBe("");
  for (const address of ["10.99.0.1", "fd99::1"]) expect(await ping(machine, container, address)).toBe(false);
  // A container that guesses the MAC address of the host's end gets no further.
  await machine.sh(
    `ip neigh replace 10.99.0.1 lladdr ${mac} dev eth0; ip -6 neigh replace fd99::1 lladdr ${mac} dev eth0`,
    { in: container },
  );
  for (const address of ["10.99.0.1", "fd99::1"]) expect(await ping(machine, container, address)).toBe(false);
  const counters = await machine.sh("nft list counter inet patchbay_ovs dropped");
  expect(Number(/packets (\d+)/.exec(counters)![1])).toBeGreaterThanOrEqual(1);
  await net.check(container);
  await machine.sh(`echo 0 >/proc/sys/net/ipv4/conf/${name}/arp_ignore; nft flush map inet patchbay_ovs links`);
  const { json } = await net.call("CHECK", container);
  expect(json.msg).toContain("is not in map links of table inet patchbay_ovs");
  expect(json.msg).toContain(`net.ipv4.conf.${name}.arp_ignore is 0, not 8`);
  await net.del(container);
});

/** Sends frames to the address of the host's end from `eth0`, or what it is called, whether it is up or not. */
async function send(machine: Machine, from: Container, to: string, link = "eth0"): Promise<void> {
  await machine.sh(
    `python3 - <<'END'
import socket, struct
me, host = bytes.fromhex("020000000009"), bytes.fromhex("${to.replaceAll(":", "")}")
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("${link}", 0))
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
def packet(number, fragment, payload):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), number, fragment, 64, 17, 0, bytes([10, 20, 0, 9]), bytes([10, 99, 0, 1]))
    return host + me + b"\\x08\\x00" + header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload
udp = struct.pack("!HHHH", 9, 9999, 8 + 8, 0) + b"a secret"
sender.send(packet(1, 0, udp))
for number in range(50): sender.send(packet(100 + number, 0x2000, udp))
END`,
    { in: from },
  );
}

/** Counts the datagrams that arrive at 10.99.0.1. */
async function listen(machine: Machine): Promise<{ count(): Promise<number> }> {
  await machine.sh("ip address replace 10.99.0.1/32 dev lo; ip route replace 10.20.0.0/24 dev lo");
  const counted = async () => {
    const counters = await machine.sh("nft list counter inet watch arrived");
    return Number(/packets (\d+)/.exec(counters)![1]);
  };
  // Fragments would be put together only where something tracks connections.
  await machine.sh(`nft -f - <<'END'
table inet watch {
  counter arrived {}
  chain input { type filter hook input priority 0; ct state new udp dport 9999 counter name arrived; }
}
END`);
  return { count: counted };
}

const fragmentsHeld = async (machine: Machine) =>
  Number(/FRAG: inuse (\d+)/.exec(await machine.sh("cat /proc/net/sockstat"))![1]);

const macOf = async (machine: Machine, link: string) =>
  (await machine.sh(`cat /sys/class/net/${link}/address`)).trim();

test("what a container sends to the host's end: while ADD waits, while it lives, while DEL waits", async () => {
  await using stage = await openOvsStage();
  const { machine, ovs } = stage, container = await machine.container(), arrived = await listen(machine);
  const net = network(machine, ovs0);
  ovs.signal("switch", "SIGSTOP");
  const adding = net.add(container);
  const link = await untilTrue(async () => {
    const links = await machine.sh("ip -br link show type veth");
    return /^(veth[0-9a-f]{8})@/m.exec(links)?.[1];
  }, Boolean);
  await machine.sh("ip link set eth0 up", { in: container });
  await send(machine, container, await macOf(machine, link!));
  ovs.signal("switch", "SIGCONT");
  await adding;
  await send(machine, container, await macOf(machine, link!));
  expect(await fragmentsHeld(machine)).toBe(0);
  ovs.signal("database", "SIGSTOP");
  const deleting = net.call("DEL", container);
  await Bun.sleep(100);
  await send(machine, container, await macOf(machine, link!));
  ovs.signal("database", "SIGCONT");
  await deleting;
  expect(await arrived.count()).toBe(0);
});

test.each(["ip link set eth0 name other", "ip link set eth0 netns elsewhere"])(
  "%s: DEL removes the pair all the same",
  async (how) => {
    await using stage = await openOvsStage();
    const { machine, ovs } = stage, container = await machine.container(), rows = await ovs.rows();
    await machine.container("elsewhere");
    const net = network(machine, ovs0);
    await net.add(container);
    await machine.sh(`ip netns exec ${container.name} ${how}`);
    await net.del(container);
    expect(await machine.sh("ip -br link show type veth")).toBe("");
    expect(await ovs.rows()).toEqual(rows);
    expect((await machine.run(["nft", "list", "table", "inet", "patchbay_ovs"])).code).toBe(1);
  },
);

test("the host answers for nobody, also where it forwards and answers for others elsewhere", async () => {
  await using stage = await openOvsStage();
  const { machine } = stage, container = await machine.container(), behind = await machine.container();
  await machine.sh(`
    ip link add out type veth peer name eth0 netns ${behind.name}
    ip address add 10.99.0.1/24 dev out; ip link set out up
    ip -n ${behind.name} address add 10.99.0.50/24 dev eth0; ip -n ${behind.name} link set eth0 up
    ip -n ${behind.name} route add default via 10.99.0.1
    echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/all/proxy_arp`);
  const net = network(machine, ovs0);
  await net.add(container);
  await machine.sh("ip route add 10.99.0.0/24 dev eth0", { in: container });
  expect(await ping(machine, behind, "10.99.0.1")).toBe(true);
  expect(await ping(machine, container, "10.99.0.50")).toBe(false);
  // Turning on forwarding later sets every link's own switch.
  await machine.sh("echo 0 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/ip_forward");
  expect(await ping(machine, container, "10.99.0.50")).toBe(false);
  await net.check(container);
  expect(await machine.sh("ip neigh show 10.99.0.50", { in: container })).not.toContain("lladdr");
});

test("plan says what is made on a userspace datapath", async () => {
  await using stage = await openOvsStage();
  const { machine } = stage, container = await machine.container();
  const list = { cniVersion: "1.1.0", name: "web", plugins: [ovs0] };
  await machine.sh(`mkdir /run/confs; cat >/run/confs/web.conflist <<'END'\n${JSON.stringify(list)}\nEND`);
  const env = { NETCONFPATH: "/run/confs" };
  const { stdout } = await machine.run([PATCHBAY, "plan", "web", container.netnsPath], { env });
  for (const text of ["are dropped on the host", "computes the checksums"]) expect(stdout).toContain(text);
});
