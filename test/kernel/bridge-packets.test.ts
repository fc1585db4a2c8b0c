/** Packets through bridge: who reaches whom, and from which source address. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { datagram, redirect, routerAdvertisement } from "../support/frames.ts";
import { lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping, serve } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";

const SENDER = resolve(import.meta.dir, "../support/send-frame.ts");

/** So many digits of a frame have both addresses. */
const MACS = 24;

const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const bridge = { type: "bridge", bridge: "br0", isDefaultGateway: true, ipam: dual };

/** A namespace beyond the host that knows no way back to the containers. */
async function uplink(machine: Machine): Promise<Container> {
  const out = await machine.container("out");
  await machine.sh(`
    ip link add up0 type veth peer name up1 netns out
    ip address add 203.0.113.1/24 dev up0; ip -6 address add 2001:db8:ff::1/64 dev up0 nodad; 
    ip link set up0 up
    ip -n out address add 203.0.113.2/24 dev up1; ip -n out -6 address add 2001:db8:ff::2/64 dev up1 nodad
    ip -n out link set up1 up
    # The kernel may notice a second late that the link has a carrier, and answers no IPv6 neighbour before.
    until ip -n out -br -6 address show dev up1 | grep -q fe80; do sleep 0.02; done`);
  return out;
}

test("containers reach one another and the gateway at once, by IPv4 and IPv6", async () => {
  await using machine = await openMachine();
  const [one, other] = [await machine.container(), await machine.container()];
  const net = network(machine, bridge);
  await net.add(one);
  // Asked for at once: an address that waits for duplicate address detection would not answer yet.
  expect(await Promise.all(["10.20.0.1", "fd20::1"].map((to) => ping(machine, one, to)))).toEqual([true, true]);
  await net.add(other);
  expect(await Promise.all(["10.20.0.3", "fd20::3"].map((to) => ping(machine, one, to)))).toEqual([true, true]);
  for (const protocol of ["tcp", "udp"] as const) {
    await using server = await serve(machine, other, protocol);
    expect(await server.ask(one, "10.20.0.3")).toBe("10.20.0.2");
    expect(await server.ask(one, "fd20::3")).toBe("fd20::2");
  }
});

for (const ipMasqBackend of ["iptables", "nftables"]) {
  test(`ipMasq with ${ipMasqBackend} hides the container from others, not from its subnet`, async () => {
    await using machine = await openMachine();
    const [one, other] = [await machine.container(), await machine.container()];
    const out = await uplink(machine);
    const net = network(machine, { ...bridge, ipMasq: true, ipMasqBackend });
    await net.add(one);
    await net.add(other);
    for (const protocol of ["tcp", "udp"] as const) {
      await using outside = await serve(machine, out, protocol);
      await using inside = await serve(machine, other, protocol);
      expect({
        outside4: await outside.ask(one, "203.0.113.2"),
        outside6: await outside.ask(one, "2001:db8:ff::2"),
        inside4: await inside.ask(one, "10.20.0.3"),
        inside6: await inside.ask(one, "fd20::3"),
      }).toEqual({ outside4: "203.0.113.1", outside6: "2001:db8:ff::1", inside4: "10.20.0.2", inside6: "fd20::2" });
    }
  });
}

test("without ipMasq the container's own address goes out", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const out = await uplink(machine);
  await machine.sh("ip -n out route add 10.20.0.0/24 via 203.0.113.1");
  await network(machine, bridge).add(container);
  await using server = await serve(machine, out, "tcp");
  expect(await server.ask(container, "203.0.113.2")).toBe("10.20.0.2");
});

test.skipIf(lacks("nftables bridge family"))("macspoofchk drops frames with another source MAC", async () => {
  await using machine = await openMachine();
  const [one, other] = [await machine.container(), await machine.container()];
  const net = network(machine, { ...bridge, macspoofchk: true });
  const { interfaces } = await net.add(one);
  await net.add(other);
  const setMac = (mac: string) => machine.sh(`ip link set eth0 address ${mac}`, { in: one });
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
  await setMac("02:00:00:00:00:66");
  expect(await ping(machine, one, "10.20.0.1")).toBe(false);
  expect(await ping(machine, other, "10.20.0.1")).toBe(true);
  await setMac(interfaces[2].mac);
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
});

test.skipIf(lacks("nftables bridge family"))(
  "macspoofchk: the bridge learns no address from frames that it takes before it asks any rule",
  async () => {
    await using machine = await openMachine();
    const [one, other] = [await machine.container("one"), await machine.container("other")];
    const net = network(machine, { ...bridge, macspoofchk: true });
    const [, { name: port }] = (await net.add(one)).interfaces;
    const [, { name: portOfOther }, { mac: from }] = (await net.add(other)).interfaces;
    const ends = { from, source: "10.20.0.3", destination: "10.20.0.255" };
    const frames = ["00", "01", "02", "03", "0e", "0f"].map((last) =>
      datagram({ ...ends, to: `01:80:c2:00:00:${last}` }, 9, 9)
    );
    const send = ["ip", "netns", "exec", "one", process.execPath, SENDER, "eth0", ...frames];
    const whereIs = () =>
      machine.sh(`bridge fdb show br br0 | grep '${from}.*master' | grep -v permanent | cut -d' ' -f3 | sort -u`);
    expect(await machine.run(send)).toMatchObject({ code: 0 });
    expect((await whereIs()).trim()).toBe(portOfOther);
    expect(await ping(machine, other, "10.20.0.1")).toBe(true);
    await net.check(one);

    // Otherwise the frames could be wrong, and nothing would be learnt; CHECK tells, and repair mends it.
    await machine.sh(
      `bridge link set dev ${port} learning on; bridge link set dev ${portOfOther} learning on; bridge fdb del ${from} dev ${portOfOther} master`,
    );
    expect((await net.call("CHECK", one)).json.msg).toContain(`learning of bridge port ${port} is on`);
    // The neighbour may send something itself, and is learnt where it is again.
    const learntAfterSending = async () => (await machine.run(send), await whereIs());
    await untilTrue(learntAfterSending, (place) => place.trim() === port);
    await machine.sh(`${PATCHBAY} repair`);
    await net.check(one);
    expect((await whereIs()).trim()).toBe(portOfOther);
  },
);

test.skipIf(lacks("isolated bridge ports"))("isolated ports reach the gateway, not one another", async () => {
  await using machine = await openMachine();
  const [one, other] = [await machine.container(), await machine.container()];
  const net = network(machine, { ...bridge, portIsolation: true });
  await net.add(one);
  await net.add(other);
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
  expect(await ping(machine, one, "10.20.0.3")).toBe(false);
});

test.skipIf(lacks("isolated bridge ports"))(
  "isolated ports reach ports that are not, also where the host's rules see what is bridged",
  async () => {
    await using machine = await openMachine();
    const [one, other, open] = [await machine.container(), await machine.container(), await machine.container()];
    const net = network(machine, { ...bridge, portIsolation: true });
    await net.add(one);
    await net.add(other);
    await network(machine, bridge).add(open);
    for (const key of ["iptables", "ip6tables"]) {
      await machine.sh(
        `[ ! -e /proc/sys/net/bridge/bridge-nf-call-${key} ] || sysctl -qw net.bridge.bridge-nf-call-${key}=1`,
      );
    }
    const places = ["10.20.0.4", "fd20::4"];
    for (const address of places) expect([address, await ping(machine, one, address)]).toEqual([address, true]);
    await machine.sh("ip route add 10.20.0.3 via 10.20.0.1; ip route add fd20::3 via fd20::1", { in: one });
    await machine.sh("ip route add 10.20.0.2 via 10.20.0.1; ip route add fd20::2 via fd20::1", { in: other });
    for (const address of ["10.20.0.3", "fd20::3"]) {
      expect([address, await ping(machine, one, address)]).toEqual([address, false]);
    }
  },
);

test.skipIf(lacks("isolated bridge ports"))(
  "what conntrack cannot tell reaches no isolated neighbour by way of the host",
  async () => {
    await using machine = await openMachine();
    const [one, other] = [await machine.container("one"), await machine.container("other")];
    const net = network(machine, { ...bridge, portIsolation: true });
    const [{ mac: to }, , { mac: from }] = (await net.add(one)).interfaces;
    await net.add(other);
    // The host knows where the neighbour is.
    for (const address of ["10.20.0.1", "fd20::1"]) expect(await ping(machine, other, address)).toBe(true);
    await machine.sh(
      `nft 'table netdev watch {
      counter arrived {}
      chain ingress {
        type filter hook ingress device eth0 priority 0
        ether saddr ${to} ip protocol icmp counter name arrived
        ether saddr ${to} icmpv6 type nd-router-advert counter name arrived
      }
    }'`,
      { in: other },
    );
    const ends = { from, to, source: "10.20.0.2", destination: "10.20.0.3" };
    const ends6 = { from, to, source: "fd20::2", destination: "fd20::3" };
    // An error about a connection that nobody has, and what is never tracked; the kernel takes off tags of VLAN 0.
    const untagged = [redirect(ends, "10.20.0.2", ends, 9), routerAdvertisement(ends6, "2001:db8:bad::")];
    const tags = ["", "81000000", "8100000081000000", "88a8000081000000", "810000008100000081000000"];
    const frames = tags.flatMap((tag) => untagged.map((frame) => frame.slice(0, MACS) + tag + frame.slice(MACS)));
    const send = ["ip", "netns", "exec", "one", process.execPath, SENDER, "eth0", ...frames];
    const sent = async () => expect(await machine.run(send)).toMatchObject({ code: 0 });
    const arrived = () => machine.sh("nft list counter netdev watch arrived", { in: other });
    // Otherwise the frames could be wrong, and nothing would be dropped.
    await machine.sh("nft flush chain netdev patchbay_isolation on_br0");
    await sent();
    await untilTrue(arrived, (text) => text.includes(`packets ${frames.length} `));
    // ADD mends the rules.
    await net.add(await machine.container("third"));
    await sent();
    expect(await ping(machine, one, "10.20.0.1")).toBe(true);
    expect(await arrived()).toContain(`packets ${frames.length} `);
  },
);

test.skipIf(lacks("bridge VLAN filtering"))("VLANs of one bridge are apart", async () => {
  await using machine = await openMachine();
  const [one, other, third] = [await machine.container(), await machine.container(), await machine.container()];
  const ipam = { type: "host-local", subnet: "10.20.0.0/24" };
  const red = network(machine, { type: "bridge", bridge: "br0", vlan: 100, isGateway: true, ipam });
  const blue = network(machine, { type: "bridge", bridge: "br0", vlan: 200, ipam });
  await red.add(one);
  await red.add(other);
  await blue.add(third);
  expect(await ping(machine, one, "10.20.0.3")).toBe(true);
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
  expect(await ping(machine, one, "10.20.0.4")).toBe(false);
  expect(await ping(machine, third, "10.20.0.1")).toBe(false);
});

test("a container reaches itself through a hairpin port", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const out = await uplink(machine);
  await network(machine, { ...bridge, hairpinMode: true }).add(container);
  // The way back into the port it came from: a service address on the host that leads to the container itself.
  await machine.sh(
    `nft 'table ip t { chain c { type nat hook prerouting priority -100; ip daddr 192.0.2.80 dnat to 10.20.0.2; }; chain d { type nat hook postrouting priority 100; ip daddr 10.20.0.2 masquerade; }; }'`,
  );
  await using server = await serve(machine, container, "tcp");
  expect(await server.ask(container, "192.0.2.80")).toBe("10.20.0.1");
  expect(out.name).toBe("out");
});

const HIGHEST = "fe:ff:ff:ff:ff:ff";
const othersBridge =
  "ip link add br0 type bridge; ip link set br0 up; ip address add 10.20.0.1/24 dev br0; ip -6 address add fd20::1/64 dev br0";

for (
  const [whose, before] of [
    ["of ours", ""],
    [
      "of others with the gateway's address",
      `${othersBridge}; ip link add p0 address ${HIGHEST} master br0 type veth`,
    ],
    ["of others that lost its last port", `${othersBridge}; ip link add p0 master br0 type veth; ip link del p0`],
  ] as const
) {
  test(`a bridge ${whose} keeps its MAC when containers come and go`, async () => {
    await using machine = await openMachine();
    await machine.sh(before);
    const net = network(machine, bridge);
    const macs = new Set<string>();
    const now = async () => (await machine.sh("cat /sys/class/net/br0/address")).trim();
    for (let count = 0; count < 4; count++) {
      const container = await machine.container();
      const { interfaces: [{ mac }, { mac: ofPort }] } = await net.add(container);
      expect(mac).not.toBe(ofPort);
      macs.add(mac);
      if (count % 2 === 1) await net.del(container);
      macs.add(await now());
    }
    for (const container of machine.containers) await net.del(container);
    expect([...macs.add(await now())]).toEqual(whose.includes("gateway") ? [HIGHEST] : [expect.any(String)]);
  });
}
