/** tap: what a program finds at the other end, the link's properties, and that nothing is left or lost. */
import { expect, test } from "bun:test";
import { leftOf, leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const MAC = "c2:11:22:33:44:55";

async function linkOf(machine: Machine, container: Container, ifName = "eth0") {
  return JSON.parse(await machine.sh(`ip -j -d link show ${ifName}`, { in: container }))[0];
}

test("a program that opens it gets the frames: a tap answers for its address, and asks for its gateways", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const routes = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }, { dst: "2001:db8:1::/48", gw: "fd20::7" }];
  const net = network(machine, { type: "tap", ipam: { ...ipam, routes } });
  await net.add(container);
  const script = `
import fcntl, json, os, select, socket, struct
fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", b"eth0", 0x1002))
me = bytes.fromhex("020000000001")
question = b"\\xff" * 6 + me + bytes.fromhex("0806" + "0001080006040001") + me + bytes([10, 20, 0, 9]) + bytes(6) + bytes([10, 20, 0, 2])
sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
seen = {}
while len(seen) < 3:
    # What is sent before the kernel has told itself that the link has a carrier now is lost.
    if not select.select([fd], [], [], 0.2)[0]:
        os.write(fd, question)
        for address in "2001:db8:1::5", "2001:db8:2::5":
            try: sender.sendto(b"x", (address, 9))
            except OSError: pass
        continue
    frame = os.read(fd, 2000)
    if frame[12:14] == b"\\x08\\x06" and frame[20:22] == b"\\x00\\x02":
        seen["answer"] = ".".join(str(byte) for byte in frame[28:32]) + " from " + frame[22:28].hex(":")
    if frame[12:14] == b"\\x86\\xdd" and frame[20] == 58 and frame[54] == 135:
        source, target = (socket.inet_ntop(socket.AF_INET6, frame[at:at + 16]) for at in (22, 62))
        if source == "fd20::2": seen[target] = "asked for"
print(json.dumps(seen))
`;
  const { address } = await linkOf(machine, container);
  const seen = await machine.sh(`timeout 10 python3 - <<'END'\n${script}\nEND`, { in: container });
  expect(JSON.parse(seen)).toEqual({
    answer: `10.20.0.2 from ${address}`,
    "fd20::1": "asked for",
    "fd20::7": "asked for",
  });
  await net.check(container);
  await machine.sh("ip -n c1 route del 2001:db8:1::/48");
  expect((await net.call("CHECK", container)).json.msg).toMatch("2001:db8:1::/48");
});

test("all its settings, as one call gives them", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip -n c1 link add br0 type bridge; ip -n c1 link set br0 up");
  const conf = { multiQueue: true, mtu: 1400, mac: MAC.toUpperCase(), owner: 0, group: 4000000000, bridge: "br0" };
  const net = network(machine, { type: "tap", ...conf, dns: { domain: "example.org" } });
  expect(await net.add(container)).toEqual({
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0", mac: MAC, sandbox: container.netnsPath }],
    dns: { domain: "example.org" },
  });
  const link = await linkOf(machine, container);
  expect(link).toMatchObject({ address: MAC, mtu: 1400, master: "br0", flags: expect.arrayContaining(["UP"]) });
  expect(link.linkinfo).toMatchObject({
    info_kind: "tun",
    info_data: { type: "tap", multi_queue: true, persist: true, user: "root", group: 4000000000 },
  });
  await net.check(container);
});

test.each([
  {
    name: "the capability",
    conf: { mac: "c2:00:00:00:00:01", runtimeConfig: { mac: MAC } },
    args: "MAC=c2:00:00:00:00:02",
  },
  { name: "CNI_ARGS", conf: { mac: "c2:00:00:00:00:01" }, args: `IgnoreUnknown=1;MAC=${MAC}` },
  { name: "the configuration, with dots", conf: { mac: "C211.2233.4455" } },
])("the MAC address is that of $name", async ({ conf, args }) => {
  await using machine = await openMachine();
  const container = await machine.container();
  const { interfaces } = await network(machine, { type: "tap", ...conf }).add(container, { args });
  expect((await linkOf(machine, container)).address).toBe(MAC);
  expect(interfaces[0].mac).toBe(MAC);
});

const noPrevResult = { prevResult: undefined };
const loseLedger = "rm -r /run/patchbay";

test.each([
  { name: "nothing spoiled" },
  { name: "no prevResult", conf: noPrevResult },
  { name: "ledger lost, no prevResult", spoil: loseLedger, conf: noPrevResult },
  { name: "the link gone", spoil: "ip -n c1 link del eth0" },
  { name: "ledger lost, the namespace gone", spoil: `${loseLedger}; ip netns del c1` },
  { name: "no CNI_NETNS", env: { CNI_NETNS: undefined }, except: /^\+ c1 / },
])("DEL leaves nothing: $name", async ({ spoil, conf, env, except }) => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, { type: "tap", ipam });
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);
  await net.add(container);
  if (spoil !== undefined) await machine.sh(spoil);
  for (let count = 0; count < 2; count++) await net.del(container, { conf, env });
  expect(await leftOf({ machine, container, moment }, except)).toEqual([]);
});

test.each([
  { name: "name taken", before: "ip -n c1 link add eth0 type veth peer name other", says: /"eth0" already exists/ },
  {
    name: "name taken by a tap",
    before: "ip netns exec c1 ip tuntap add mode tap name eth0",
    says: /"eth0" already exists/,
  },
  { name: "no such bridge", conf: { bridge: "br7" }, says: /failed to get bridge br7: Link not found/ },
  {
    name: "a bridge whose name begins so",
    before: "ip -n c1 link add abcdefghijklmno type bridge",
    conf: { bridge: "abcdefghijklmnopq" },
    says: /failed to get bridge abcdefghijklmnopq: Link not found/,
  },
  { name: "a bridge that is none", conf: { bridge: "lo" }, says: /failed to set up tap eth0/ },
  { name: "mtu out of bounds", conf: { mtu: 100000 }, says: /failed to set up tap eth0/ },
  { name: "mtu beyond 32 bits", conf: { mtu: 4294968696 }, says: /mtu.*4294968696 is not an MTU/, code: 7 },
  { name: "an owner below 0", conf: { owner: -1 }, says: /"owner".*-1/, code: 7 },
  { name: "an owner that is none", conf: { owner: 4294967295 }, says: /4294967295/, code: 5 },
  { name: "a context without SELinux", conf: { selinuxContext: "system_u:object_r:tap_t:s0" }, says: /./, code: 5 },
  { name: "IPAM plugin missing", conf: { ipam: { type: "nothing" } }, says: /nothing/ },
])("a failed ADD leaves nothing: $name", async ({ before, conf, says, code = 999 }) => {
  await using machine = await openMachine();
  const container = await machine.container();
  if (before !== undefined) await machine.sh(before);
  const moment = await quietMoment(machine);
  const answer = await network(machine, { type: "tap", ipam }).call("ADD", container, { conf });
  expect(`${answer.json.msg} ${answer.json.details}`).toMatch(says);
  expect(answer.json.code).toBe(code);
  expect(await leftSince(moment, machine, /file \/var\/lib\/cni\/networks/)).toEqual([]);
});

test("a tap that another program made, as the reference plugin does, is removed", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip tuntap add mode tap name eth0 multi_queue user 5; ip link set eth0 up", { in: container });
  await network(machine, { type: "tap" }).del(container);
  expect(await machine.sh("ip -br link", { in: container })).not.toContain("eth0");
});

test("a link of another kind that took the tap's name stays", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, { type: "tap" });
  await net.add(container);
  await machine.sh("ip link del eth0; ip link add eth0 type veth peer name eth1", { in: container });
  await net.del(container);
  expect(await machine.sh("ip -br link", { in: container })).toContain("eth0");
});

test("STATUS: taps can be made", async () => {
  await using machine = await openMachine();
  expect((await network(machine, { type: "tap" }).call("STATUS", undefined)).code).toBe(0);
  await machine.sh("mount -t tmpfs tmpfs /dev/net");
  const answer = await network(machine, { type: "tap" }).call("STATUS", undefined);
  expect(answer.json).toMatchObject({ code: 50, details: expect.stringContaining("/dev/net/tun") });
});
