/** Other kinds of links and networks than a bridge with addresses: what is asked is tried for real, too. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ExplanationDocument } from "../../src/explain/explanation.schema.ts";
import { commandsOn, networkFiles } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { UPLINK } from "../support/way-out.ts";

let machine: Machine;
const { directory, configure } = networkFiles();
const { patchbay, must } = commandsOn(() => machine, () => directory);
const ipam = (net: number) => ({
  type: "host-local",
  ranges: [[{ subnet: `10.${net}.0.0/24` }]],
  routes: [{ dst: "0.0.0.0/0" }],
});
const bridge = (net: number, more: object = {}) => ({
  type: "bridge",
  bridge: `br${net}`,
  isGateway: true,
  ipMasq: true,
  ipam: ipam(net),
  ...more,
});

beforeAll(async () => {
  machine = await openMachine();
  for (const name of ["outside", "p1", "p2", "m1", "m2", "s1", "s2", "a1", "a2", "b1", "i1", "i2", "v1", "v2"]) {
    await machine.container(name);
  }
  await machine.sh(UPLINK);
  configure("point", [{ type: "ptp", ipMasq: true, ipam: ipam(50) }]);
  configure("mac", [{
    type: "macvlan",
    master: "eth1",
    ipam: { type: "host-local", ranges: [[{ subnet: "198.18.0.0/24", rangeStart: "198.18.0.50" }]] },
  }]);
  configure("spoof", [bridge(51, { macspoofchk: true })]);
  configure("apart", [bridge(52), { type: "firewall", ingressPolicy: "same-bridge" }]);
  configure("beyond", [bridge(53), { type: "firewall", ingressPolicy: "same-bridge" }]);
  configure("private", [{
    type: "macvlan",
    master: "eth1",
    mode: "private",
    ipam: { type: "host-local", ranges: [[{ subnet: "198.18.0.0/24", rangeStart: "198.18.0.80" }]] },
  }]);
  configure("second", [{ type: "ptp", ipam: { type: "host-local", ranges: [[{ subnet: "10.56.0.0/24" }]] } }]);
  configure("alone", [bridge(54, { portIsolation: true })]);
  const attached = {
    point: ["p1", "p2"],
    mac: ["m1", "m2"],
    spoof: ["s1", "s2"],
    apart: ["a1", "a2"],
    beyond: ["b1"],
    alone: ["i1", "i2"],
    private: ["v1", "v2"],
  };
  for (const [network, names] of Object.entries(attached)) for (const name of names) await must("add", network, name);
  await must("add", "second", "a1", "--ifname", "eth1");
});
afterAll(() => machine[Symbol.asyncDispose]());

async function explain(from: string, to: string): Promise<ExplanationDocument> {
  // A stranger has another address than the one that is tried.
  const sender = from === "outside" ? "198.18.0.2" : from;
  const { stdout, stderr } = await patchbay(["explain", sender, to, "--json"]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout)[0];
}

async function reaches(from: string, address: string): Promise<boolean> {
  const place = from === "host" ? [] : ["ip", "netns", "exec", from];
  return (await machine.run([...place, "ping", "-nc1", "-W1", address])).code === 0;
}

const passes: [from: string, to: string, address: string, verdict: string][] = [
  ["p1", "198.18.0.2", "198.18.0.2", "leaves"],
  ["p1", "p2", "10.50.0.3", "arrives"],
  ["m1", "198.18.0.2", "198.18.0.2", "leaves"],
  ["m1", "m2", "198.18.0.51", "arrives"],
  ["outside", "m1", "198.18.0.50", "arrives"],
  ["s1", "198.18.0.2", "198.18.0.2", "leaves"],
  ["a1", "a2", "10.52.0.3", "arrives"],
  ["a1", "10.56.0.1", "10.56.0.1", "arrives"],
  ["i1", "198.18.0.2", "198.18.0.2", "leaves"],
  ["v1", "198.18.0.2", "198.18.0.2", "leaves"],
];

test.each(passes)("%s reaches %s", async (from, to, address, verdict) => {
  expect(await reaches(from, address)).toBe(true);
  expect(await explain(from, to)).toMatchObject({ verdict, ways: { stopped: 0 } });
});

const kept: [from: string, to: string, address: string, code: string][] = [
  ["m1", "198.18.0.1", "198.18.0.1", "macvlan-host"],
  ["host", "m1", "198.18.0.50", "macvlan-host"],
  ["a1", "b1", "10.53.0.2", "kept-apart"],
  ["i1", "i2", "10.54.0.3", "port-isolated"],
  ["v1", "v2", "198.18.0.81", "kept-apart"],
  ["m1", "v1", "198.18.0.80", "kept-apart"],
];

test.each(kept)("%s does not reach %s, on purpose", async (from, to, address, code) => {
  expect(await reaches(from, address)).toBe(false);
  expect(await explain(from, to)).toMatchObject({ verdict: "stops", cause: { code } });
});

test("a container with another MAC address is dropped where macspoofchk is asked", async () => {
  await machine.sh("ip -n s1 link set eth0 address 02:00:00:00:00:99");
  expect(await reaches("s1", "198.18.0.2")).toBe(false);
  expect(await explain("s1", "198.18.0.2")).toMatchObject({ verdict: "stops", cause: { code: "kept-apart" } });
});

test("a macvlan of the host beside the container's answers for every address of the host", async () => {
  await machine.sh("ip link add shim link eth1 type macvlan mode bridge; ip link set shim up");
  // The host hears it, and answers by eth1.
  expect(await reaches("m1", "198.18.0.1")).toBe(false);
  expect(await explain("m1", "198.18.0.1")).toMatchObject({
    verdict: "stops",
    cause: { code: "macvlan-host", text: "this host does not reach 198.18.0.50, a macvlan above its own eth1" },
  });
  await machine.sh("ip address add 198.18.0.200/32 dev shim; ip route add 198.18.0.50 dev shim");
  for (const address of ["198.18.0.200", "198.18.0.1"]) {
    expect(await reaches("m1", address)).toBe(true);
    expect(await explain("m1", address)).toMatchObject({ verdict: "arrives", ways: { stopped: 0 } });
  }
  await machine.sh("sysctl -qw net.ipv4.conf.shim.arp_ignore=1; ip -n m1 neighbour flush all");
  expect(await reaches("m1", "198.18.0.1")).toBe(false);
  expect(await explain("m1", "198.18.0.1")).toMatchObject({ verdict: "stops", cause: { code: "macvlan-host" } });
  // The other mode keeps them apart both ways.
  await machine.sh("ip route add 198.18.0.80 dev shim");
  for (
    const [from, to, address] of [["host", "v1", "198.18.0.80"], ["v1", "198.18.0.200", "198.18.0.200"]] as const
  ) {
    expect(await reaches(from, address)).toBe(false);
    expect(await explain(from, to)).toMatchObject({ verdict: "stops", cause: { code: "kept-apart" } });
  }
});
