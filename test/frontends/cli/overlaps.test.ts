/** Networks that give out the same addresses, and the host's routes: told by lint, ls, status and plan, refused by none. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await openMachine();
});
afterAll(() => machine[Symbol.asyncDispose]());

const CONFIGS = "/run/overlaps";
const from = (subnet: string, more: object = {}) => ({ ipam: { type: "host-local", subnet, ...more } });
const bridge = (bridge: string, ipam: object, more: object = {}) => ({
  type: "bridge",
  bridge,
  isGateway: true,
  ...ipam,
  ...more,
});
const ptp = (ipam: object) => ({ type: "ptp", ...ipam });
const macvlan = (master: string, ipam: object) => ({ type: "macvlan", master, ...ipam });
const low = from("10.1.0.0/24", { rangeEnd: "10.1.0.99" }), high = from("10.1.0.0/24", { rangeStart: "10.1.0.100" });
const whole = from("10.1.0.0/24");

async function write(networks: Record<string, object>): Promise<void> {
  await machine.sh(`rm -rf ${CONFIGS}; mkdir ${CONFIGS}`);
  for (const [name, plugin] of Object.entries(networks)) {
    const list = JSON.stringify({ cniVersion: "1.1.0", name, plugins: [plugin] });
    await machine.sh(`cat > ${CONFIGS}/${name}.conflist <<'end'\n${list}\nend`);
  }
}
const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: CONFIGS } });

const pairs: [title: string, one: object, other: object, subnet?: string][] = [
  ["one bridge, one subnet", bridge("br0", whole), bridge("br0", whole), "10.1.0.0/24"],
  ["one bridge, parts of a subnet", bridge("br0", low), bridge("br0", high)],
  ["one bridge, parts that overlap", bridge("br0", low), bridge("br0", whole), "10.1.0.0/24"],
  ["one bridge, two VLANs", bridge("br0", whole, { vlan: 5 }), bridge("br0", from("10.2.0.0/24"), { vlan: 6 })],
  ["two bridges, one subnet in the other", bridge("br0", whole), bridge("br1", from("10.1.0.0/25")), "10.1.0.0/24"],
  ["two bridges, parts of a subnet", bridge("br0", low), bridge("br1", high), "10.1.0.0/24"],
  ["two bridges, two subnets", bridge("br0", whole), bridge("br1", from("10.2.0.0/24"))],
  ["two bridges, IPv6", bridge("br0", from("fd01::/64")), bridge("br1", from("fd01::/56")), "fd01::/64"],
  ["ptp twice", ptp(whole), ptp(whole), "10.1.0.0/24"],
  ["ptp and a bridge", ptp(low), bridge("br0", high), "10.1.0.0/24"],
  ["one master", macvlan("eth0", whole), macvlan("eth0", whole), "10.1.0.0/24"],
  ["one master, parts of a subnet", macvlan("eth0", low), macvlan("eth0", high)],
  ["two masters", macvlan("eth0", whole), macvlan("eth1", whole)],
  ["a bridge that is no gateway", bridge("br0", whole, { isGateway: false }), bridge("br1", whole)],
];

for (const [title, one, other, subnet] of pairs) {
  test(`${title}: ${subnet === undefined ? "apart" : "overlap"}`, async () => {
    await write({ one, other });
    const line = `addresses ${subnet} overlap with those of network other in ${CONFIGS}/other.conflist`;
    const told = (text: string) => text.split("\n").filter((each) => each.includes("overlap with"));
    const expected = (start: string) => subnet === undefined ? [] : [`${start}${line}`];

    const lint = await patchbay("lint");
    const ofOne = (text: string) => told(text).filter((each) => each.includes("of network other"));
    expect(ofOne(lint.stdout)).toEqual(expected(`${CONFIGS}/one.conflist:1:1: warning: `));
    expect([lint.code, told(lint.stdout).length]).toEqual(subnet === undefined ? [0, 0] : [1, 2]);
    const ls = await patchbay("ls");
    expect(ofOne(ls.stdout)).toEqual(expected("network one: "));
    expect(told(ls.stdout).length).toBe(subnet === undefined ? 0 : 2);
    const warnings = JSON.parse((await patchbay("ls", "--json")).stdout).map((each: { warnings: string[] }) =>
      each.warnings
    );
    expect(warnings[0]).toEqual(expected(""));
    expect(told((await patchbay("status", "one")).stderr)).toEqual(expected("patchbay status: "));
    expect(told((await patchbay("plan", "one", "/nosuch")).stderr)).toEqual(expected("patchbay: network one: "));
    expect(told((await patchbay("add", "one", "/nosuch")).stderr)).toEqual([]);
  });
}

test("files of one network are one pool", async () => {
  await write({ one: bridge("br0", whole) });
  await machine.sh(`cp ${CONFIGS}/one.conflist ${CONFIGS}/two.conflist`);
  expect((await patchbay("ls")).stdout).not.toContain("overlap with");
});

test("many networks of one subnet have one line each", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const told = async () => (await patchbay("ls")).stdout.split("\n").filter((line) => line.startsWith("network a: "));
  await write(Object.fromEntries(names.map((name) => [name, ptp(whole)])));
  expect(await told()).toEqual([
    "network a: addresses 10.1.0.0/24 overlap with those of 4 networks: b, c, d and 1 more",
  ]);
  await machine.sh(`rm ${CONFIGS}/e.conflist`);
  expect(await told()).toEqual(["network a: addresses 10.1.0.0/24 overlap with those of 3 networks: b, c and d"]);
});

test("routes of the host by another link than the network's own", async () => {
  await using machine = await openMachine();
  await machine.sh(`ip link add podman0 type bridge; ip link property add dev podman0 altname podman-bridge
    ip link set podman0 up; ip address add 10.1.0.1/24 dev podman0
    ip link add br0 type bridge; ip link set br0 up; ip address add 10.2.0.1/24 dev br0
    ip route add 10.3.0.9/32 dev podman0; ip route add 10.0.0.0/8 via 10.2.0.9; ip route add default via 10.2.0.9`);
  const rows: [plugin: object, told: string[]][] = [
    [bridge("br9", from("10.1.0.0/16")), ["10.1.0.0/16 overlap with the host's route to 10.1.0.0/24 by podman0"]],
    [bridge("br9", from("10.1.0.0/25")), ["10.1.0.0/25 overlap with the host's route to 10.1.0.0/24 by podman0"]],
    [ptp(whole), ["10.1.0.0/24 overlap with the host's route to 10.1.0.0/24 by podman0"]],
    [bridge("podman0", whole), []],
    [bridge("podman-bridge", whole), []],
    [bridge("br0", from("10.2.0.0/24")), []],
    [bridge("br9", from("10.3.0.0/24")), []],
    [bridge("br9", from("192.168.0.0/24")), []],
    [macvlan("eth0", whole), []],
  ];
  for (const [plugin, told] of rows) {
    const list = JSON.stringify({ cniVersion: "1.1.0", name: "net", plugins: [plugin] });
    await machine.sh(`mkdir -p ${CONFIGS}; cat > ${CONFIGS}/net.conflist <<'end'\n${list}\nend`);
    const env = { NETCONFPATH: CONFIGS };
    const listed = JSON.parse((await machine.run([PATCHBAY, "ls", "--json"], { env })).stdout);
    expect([plugin, listed[0].warnings]).toEqual([plugin, told.map((line) => `addresses ${line}`)]);
    for (const command of ["plan", "add"]) {
      const { stderr } = await machine.run([PATCHBAY, command, "net", "/nosuch"], { env });
      const lines = stderr.split("\n").filter((line) => line.includes("overlap"));
      const expected = command === "add" ? [] : told.map((line) => `patchbay: network net: addresses ${line}`);
      expect({ command, lines }).toEqual({ command, lines: expected });
    }
  }
});
