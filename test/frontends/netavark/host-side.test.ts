/** What setup chooses by a look at the host: a name, an MTU, servers; and the names that it does not take from others. */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn } from "../../support/netavark/attached.ts";
import { AARDVARK, ND } from "../../support/netavark/names.ts";
import { netavark } from "../../support/netavark/netavark.ts";

type Network = Parameters<typeof bridgeNetwork>[1];

/** Runs `look` while the container is attached. */
async function whileAttached<Seen>(machine: Machine, container: Container, input: object, look: () => Promise<Seen>) {
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  const seen = await look();
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  return seen;
}

async function linkIn(machine: Machine, container: Container, name: string) {
  return JSON.parse(await machine.sh(`ip -j link show ${name}`, { in: container }))[0];
}

test("the veth's end on the host has the first free number, and loopback is up", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), input = containerIn([{ network: bridgeNetwork() }]);
  for (let taken = 0; taken <= 5; taken++) {
    if (taken > 0) await machine.sh(`ip link add veth${taken - 1} type bridge`);
    const port = await whileAttached(machine, container, input, () => machine.sh("ip -br link show master podman8"));
    expect(port).toStartWith(`veth${taken}@`);
  }
  expect((await linkIn(machine, container, "lo")).flags).toContain("UP");
});

test("the MTU is the network's, else the bridge's, else that of the way out", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh(`
    ip link add way0 mtu 1400 type veth peer name far0; ip link set way0 up; ip link set far0 up
    ip addr add 192.0.2.1/24 dev way0; ip link add own8 type bridge; ip link set own8 mtu 1290 up
  `);
  const mtu = async (network: Network = {}) => {
    const input = containerIn([{ network: bridgeNetwork(8, network) }]);
    return await whileAttached(
      machine,
      container,
      input,
      async () => (await linkIn(machine, container, "eth0")).mtu,
    );
  };
  expect(await mtu()).toBe(1500);
  await machine.sh("ip route add default via 192.0.2.2");
  expect(await mtu()).toBe(1400);
  expect(await mtu({ options: { mtu: "1350" } })).toBe(1350);
  expect(await mtu({ network_interface: "own8", options: { mode: "unmanaged" } })).toBe(1290);
  expect(await mtu({ network_interface: "own8" })).toBe(1290);
});

test("names that the host or the container has are refused", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh("ip link add mine0 type bridge; ip -n c1 link add eth1 type bridge");
  const setup = async (interface_name: string, host_interface_name?: string) => {
    const attachment = { interface_name, ...host_interface_name && { options: { host_interface_name } } };
    const input = containerIn([{ network: bridgeNetwork(), attachment }]);
    const { code, json } = await attach(machine, "setup", container, input);
    if (code === 0) await attach(machine, "teardown", container, input);
    return code === 0 ? "" : json.error;
  };
  const error = (ifName: string, host: string) =>
    `create veth pair: interface ${ifName} already exists on container namespace${host}: ` +
    "Netlink error: File exists (os error 17)";
  expect(await setup("eth0", "free0")).toBe("");
  expect(await setup("eth0", "mine0")).toBe(error("eth0", " or mine0 exists on host namespace"));
  expect(await setup("eth0", "podman8")).toBe(error("eth0", " or podman8 exists on host namespace"));
  expect(await setup("eth1", "free0")).toBe(error("eth1", ""));
  expect(await setup("eth1")).toBe(error("eth1", ""));
  expect(await machine.sh("ip -br link show type bridge | cut -d' ' -f1")).toBe("mine0\n");
});

test("the servers of a bridge of the host's are its addresses that other hosts can have", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const network = bridgeNetwork(8, { options: { mode: "unmanaged" }, dns_enabled: true });
  const input = containerIn([{ network }]);
  await machine.sh(`mkdir ${ND}; ip link add podman8 type bridge; ip link set podman8 up
    ip addr add fe80::8/64 dev podman8 nodad`);
  const call = (verb: string) => netavark(machine, ["-c", ND, "-a", AARDVARK, verb, container.netnsPath], input);
  const { code, json } = await call("setup");
  expect([code, json.error]).toEqual([1, expect.stringContaining("in unmanaged mode has no usable IP addresses")]);
  await machine.sh("ip addr add 10.88.0.1/24 dev podman8; ip addr add fd00:8::1/64 dev podman8 nodad");
  expect((await call("setup")).json.net8).toMatchObject({
    dns_server_ips: ["10.88.0.1", "fd00:8::1"],
    dns_search_domains: ["dns.podman"],
  });
  expect(await call("teardown")).toMatchObject({ code: 0 });
});
