/** Packets through bridge: who reaches whom, and from which source address. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { ping, serve } from "../support/traffic.ts";

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

test.skipIf(lacks("isolated bridge ports"))("isolated ports reach the gateway, not one another", async () => {
  await using machine = await openMachine();
  const [one, other] = [await machine.container(), await machine.container()];
  const net = network(machine, { ...bridge, portIsolation: true });
  await net.add(one);
  await net.add(other);
  expect(await ping(machine, one, "10.20.0.1")).toBe(true);
  expect(await ping(machine, one, "10.20.0.3")).toBe(false);
});

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

test("the bridge keeps its MAC when containers come and go", async () => {
  await using machine = await openMachine();
  const net = network(machine, bridge);
  const macs = [];
  for (let count = 0; count < 4; count++) {
    const container = await machine.container();
    macs.push((await net.add(container)).interfaces[0].mac);
    if (count % 2 === 1) await net.del(container);
  }
  expect(new Set(macs).size).toBe(1);
  expect((await machine.sh("cat /sys/class/net/br0/address")).trim()).toBe(macs[0]);
});
