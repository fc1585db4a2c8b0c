/** Bridges with VLANs, in a VRF, and of the host; and what isolation lets through. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, momentOf } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";
import { ping, serve } from "../../support/traffic.ts";

const KEPT = new RegExp(`^[-+] (file ${ND}/|host link podman8 tso_max_size)`);

async function attached(machine: Machine, name: string, input: object) {
  const container = await machine.container(name);
  await machine.sh("ip link set lo up", { in: container });
  const answer = await attach(machine, "setup", container, input);
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  return container;
}

test.skipIf(lacks("bridge VLAN filtering"))("two VLANs of one bridge do not meet", async () => {
  await using machine = await openMachine();
  const inVlan = (vlan: string, name: string, number: number) =>
    containerIn([{ network: bridgeNetwork(8, { name, options: { vlan } }) }], number);
  const one = await attached(machine, "one", inVlan("5", "five", 1));
  const two = await attached(machine, "two", inVlan("5", "five", 2));
  const three = await attached(machine, "three", inVlan("6", "six", 3));
  expect(await ping(machine, one, "10.88.0.12")).toBe(true);
  expect((await machine.run(["ping", "-nc1", "-W1", "10.88.0.11"], { in: three })).code).not.toBe(0);
  expect(JSON.parse(await machine.sh("ip -j -d link show podman8"))[0].linkinfo.info_data.vlan_filtering).toBe(1);
  expect(JSON.parse(await machine.sh("bridge -j vlan show dev veth0"))[0].vlans).toEqual([
    { vlan: 5, flags: ["PVID", "Egress Untagged"] },
  ]);
  for (
    const [container, input] of [[one, inVlan("5", "five", 1)], [two, inVlan("5", "five", 2)], [
      three,
      inVlan("6", "six", 3),
    ]] as const
  ) {
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  }
  expect(await machine.sh("ip -br link show type bridge")).toBe("");
});

test.skipIf(lacks("VRF links"))("a bridge in a VRF", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add blue type vrf table 10; ip link set blue up");
  const input = containerIn([{ network: bridgeNetwork(8, { options: { vrf: "blue" } }) }]);
  const container = await attached(machine, "one", input);
  expect(JSON.parse(await machine.sh("ip -j link show podman8"))[0].master).toBe("blue");
  expect(await machine.sh("ip route show vrf blue")).toContain("10.88.0.0/24 dev podman8");
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("ip -br link show master blue")).toBe("");
});

test("a bridge of the host's is used as it is, and stays", async () => {
  await using machine = await openMachine();
  await machine.sh(
    "ip link add podman8 address 02:00:00:00:00:08 type bridge; ip addr add 10.88.0.1/24 dev podman8; ip link set podman8 up",
  );
  const network = bridgeNetwork(8, {
    options: { mode: "unmanaged" },
    subnets: [{ subnet: "10.88.0.0/24", gateway: "10.88.0.1" }],
  });
  const input = containerIn([{ network }]);
  // A bridge gets its link-local address with its first port.
  const first = await attached(machine, "first", input);
  await attach(machine, "teardown", first, input);
  await machine.removeContainer(first);
  const before = await momentOf(machine), container = await attached(machine, "one", input);
  expect(await ping(machine, undefined, "10.88.0.11")).toBe(true);
  expect((await machine.run(["nft", "list", "table", "inet", "netavark"])).code).toBe(1);
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  await machine.removeContainer(container);
  expect(await leftSince(before, machine, KEPT)).toEqual([]);
});

test("a managed bridge that is there gets what it lacks; inspect tells and repair mends", async () => {
  await using machine = await openMachine();
  const network = bridgeNetwork(8), input = containerIn([{ network }]);
  const refused = containerIn([{ network, attachment: { static_mac: "00:00:00:00:00:00" } }]);
  await machine.sh(
    "ip link add podman8 type bridge; sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
  );
  const bridge = () => machine.sh("ip -br addr show podman8; ip -br link show podman8 | grep -c '[<,]UP' || true");
  const bare = await bridge(), failing = await machine.container("failing");
  expect(bare).toMatch(/^podman8\s+DOWN\s*\n0\n$/);
  // A failed setup takes back what it gave.
  expect(await attach(machine, "setup", failing, refused)).toMatchObject({ code: 1 });
  expect(await bridge()).toBe(bare);
  const container = await attached(machine, "one", input);
  const reachable = async () => {
    for (const address of ["10.88.0.1", "fd00:8::1"]) {
      // A bridge that setup has not made detects duplicates of its IPv6 address.
      await untilTrue(() => ping(machine, container, address), (answered) => answered);
    }
  };
  await reachable();
  const shown = await machine.sh(`${PATCHBAY} inspect`);
  expect(shown).toContain("in firewalld's zone trusted, where firewalld runs\n");
  const damages = [
    ["ip link set podman8 down", "bridge podman8 is down", "address fd00:8::1/64 of bridge podman8 is missing"],
    ["ip addr del 10.88.0.1/24 dev podman8", "address 10.88.0.1/24 of bridge podman8 is missing"],
    ["ip addr del fd00:8::1/64 dev podman8", "address fd00:8::1/64 of bridge podman8 is missing"],
  ] as const;
  for (const [damage, ...differences] of damages) {
    await machine.sh(damage);
    const { code, stdout } = await machine.run([PATCHBAY, "inspect"]);
    expect(code).toBe(1);
    for (const difference of differences) expect(stdout).toContain(difference);
    await machine.sh(`${PATCHBAY} repair`);
    expect((await machine.run([PATCHBAY, "inspect"])).code).toBe(0);
    await reachable();
  }
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("ip -br link show type bridge")).toBe("");
});

test.skipIf(lacks("bridge VLAN filtering"))("a failed setup leaves a bridge without VLANs as it was", async () => {
  await using machine = await openMachine();
  const network = bridgeNetwork(8, { options: { mode: "unmanaged", vlan: "5" } });
  const refused = containerIn([{ network, attachment: { static_mac: "00:00:00:00:00:00" } }]);
  await machine.sh("ip link add podman8 type bridge; ip link set podman8 up");
  const filters = async () => (await machine.sh("ip -d link show podman8")).includes("vlan_filtering 1");
  expect(await attach(machine, "setup", await machine.container("failing"), refused)).toMatchObject({ code: 1 });
  expect(await filters()).toBe(false);
  const input = containerIn([{ network }]), container = await attached(machine, "one", input);
  expect(await filters()).toBe(true);
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
});

test("isolation: who reaches whom between two networks, and published ports always", async () => {
  const matrix = [
    ["false", "false", true],
    ["true", "false", true],
    ["true", "true", false],
    ["strict", "strict", false],
  ] as const;
  for (const [from, to, reaches] of matrix) {
    await using machine = await openMachine();
    const one = containerIn([{ network: bridgeNetwork(7, { options: { isolate: from } }) }], 1);
    const two = containerIn([{ network: bridgeNetwork(8, { options: { isolate: to } }) }], 2, [published(8080, 80)]);
    const [asking, serving] = [await attached(machine, "one", one), await attached(machine, "two", two)];
    await using server = await serve(machine, serving, "tcp", 80);
    expect([from, to, (await server.ask(asking, "10.88.0.12", 80)) !== undefined]).toEqual([from, to, reaches]);
    expect(await server.ask(asking, "10.87.0.1", 8080)).toBeDefined();
  }
});

test("isolation goes by the bridges' own names, also where the networks have alternative ones", async () => {
  await using machine = await openMachine();
  await machine.sh(`
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    for n in 7 8; do ip link add br$n type bridge; ip link property add dev br$n altname podman$n; done`);
  const rules = async () => (await machine.sh("nft list table inet netavark")).match(/ifname "\w+"/g) ?? [];
  const inputs = [7, 8].map((n) =>
    containerIn([{ network: bridgeNetwork(n, { options: { isolate: n === 7 ? "true" : "strict" } }) }], n)
  );
  const [asking, serving] = [
    await attached(machine, "one", inputs[0]!),
    await attached(machine, "two", inputs[1]!),
  ];
  expect(await rules()).toContain('ifname "br7"');
  for (const address of ["10.88.0.18", "fd00:8::18"]) expect(await ping(machine, asking, address)).toBe(false);
  expect(await ping(machine, asking, "10.88.0.1")).toBe(true);
  expect((await machine.run([PATCHBAY, "inspect"])).code).toBe(0);
  for (const [container, input] of [[asking, inputs[0]], [serving, inputs[1]]] as const) {
    expect(await attach(machine, "teardown", container, input!)).toMatchObject({ code: 0, stderr: "" });
  }
  expect(await rules()).toEqual([]);
});

test("an internal network: neither a way out nor rules", async () => {
  await using machine = await openMachine();
  const input = containerIn([{ network: bridgeNetwork(8, { internal: true }) }], 1, [published(8080, 80)]);
  const container = await attached(machine, "one", input);
  expect(await machine.sh("ip route; ip -6 route", { in: container })).not.toContain("default");
  expect((await machine.run(["nft", "list", "table", "inet", "netavark"])).code).toBe(1);
  expect(await ping(machine, container, "10.88.0.1")).toBe(true);
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("ip -br link show type bridge")).toBe("");
});
