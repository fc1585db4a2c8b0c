/** What the host refuses from a container is compared and put right, and told where it cannot be set. */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import type { PodmanPortMapping } from "../../src/interop/podman-documents/netavark.schema.ts";
import { lacks } from "../support/kernel-features.ts";
import { attach, bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { drive } from "../support/resources.ts";

const ipam = { type: "host-local", subnet: "10.20.0.0/24" };
const readOnly = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys";
const net8 = bridgeNetwork(8, { subnets: [{ subnet: "10.88.0.0/24", gateway: "10.88.0.1" }], ipv6_enabled: false });

/** Adds, and returns the host's link. */
type Add = (machine: Machine, container: Container) => Promise<string>;

const byCni = (conf: { type: string; [key: string]: unknown }): Add => async (machine, container) =>
  (await network(machine, conf).add(container)).interfaces[0].name;

const byAlternativeName: Add = async (machine, container) => {
  await machine.sh("ip link add br0 type bridge; ip link property add dev br0 altname alt0");
  return await byCni({ type: "bridge", bridge: "alt0", ipam })(machine, container);
};

const byPodmanAs =
  (network_interface: string, ports: PodmanPortMapping[] = []): Add => async (machine, container) => {
    const input = containerIn([{ network: { ...net8, network_interface } }], 1, ports);
    expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
    return network_interface;
  };
const byPodman = byPodmanAs("podman8");

const v6 = (link: string) => `net/ipv6/conf/${link}/accept_ra`,
  v4 = (link: string) => `net/ipv4/conf/${link}/accept_redirects`;

for (
  const [name, add, keys] of [
    ["bridge", byCni({ type: "bridge", bridge: "br0", ipam }), [() => v6("br0"), () => v4("br0"), () => v4("all")]],
    ["bridge, by its alternative name", byAlternativeName, [() => v6("br0"), () => v4("br0"), () => v4("all")]],
    ["ptp", byCni({ type: "ptp", ipam }), [v6, v4]],
    ["podman's bridge", byPodman, [v6, v4, () => v4("all")]],
  ] as const
) {
  test(`${name}: whoever opens it is found out, and repair closes it`, async () => {
    await using machine = await openMachine();
    const link = await add(machine, await machine.container());
    for (const key of keys.map((of) => of(link))) {
      expect(await machine.sh(`cat /proc/sys/${key}; echo 1 > /proc/sys/${key}`)).toBe("0\n");
      const inspected = await machine.run([PATCHBAY, "inspect"]);
      expect(inspected.stdout).toContain(`${key.replaceAll("/", ".")} is 1, not 0`);
      expect(await machine.run([PATCHBAY, "repair"])).toMatchObject({ code: 0, stderr: "" });
      expect(await machine.sh(`cat /proc/sys/${key}`)).toBe("0\n");
    }
  });
}

const madeBefore = "ip link add br0 type bridge; ip link set br0 up; ip link property add dev br0 altname alt0";
const gatewayBefore = `${madeBefore}; ip link set br0 type bridge vlan_filtering 1
  ip link add br0.7 type veth peer name port7 master br0; ip link set port7 up; ip link set br0.7 up`;
const onBridge = { type: "bridge", bridge: "br0", isGateway: true, ipam };

for (
  const [name, before, add, link] of [
    ["bridge", madeBefore, byCni(onBridge), "br0"],
    ["bridge, by its alternative name", madeBefore, byCni({ ...onBridge, bridge: "alt0" }), "br0"],
    ["gateway of a VLAN", gatewayBefore, byCni({ ...onBridge, vlan: 7 }), "br0.7"],
    ["podman's bridge", madeBefore, byPodmanAs("br0"), "br0"],
    ["podman's bridge, by its alternative name", madeBefore, byPodmanAs("alt0"), "br0"],
  ] as const
) {
  test.skipIf(lacks(name.includes("VLAN") ? "bridge VLAN filtering" : undefined))(
    `${name}: one that others made before refuses the same`,
    async () => {
      await using machine = await openMachine();
      await machine.sh(`sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.accept_redirects=1; ${before}`);
      await add(machine, await machine.container());
      const keys = [v6(link), v4(link), v4("all")].join(" ");
      expect(await machine.sh(`cd /proc/sys; grep -H . ${keys}`)).toBe(
        [v6(link), v4(link), v4("all")].map((key) => `${key}:0\n`).join(""),
      );
    },
  );
}

test("ptp: the link refuses redirects itself, also where the host forwards and says that all accept them", async () => {
  await using machine = await openMachine();
  await machine.sh("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.accept_redirects=1");
  const link = await byCni({ type: "ptp", ipam })(machine, await machine.container());
  expect(await machine.sh(`cat /proc/sys/${v4(link)} /proc/sys/${v4("all")}`)).toBe("0\n1\n");
});

test("podman's bridge, by its alternative name: 127.0.0.1 leads to its ports, by its own name", async () => {
  await using machine = await openMachine();
  await machine.sh(madeBefore);
  await byPodmanAs("alt0", [published(8080, 80)])(machine, await machine.container());
  expect(await machine.sh("cat /proc/sys/net/ipv4/conf/br0/route_localnet")).toBe("1\n");
  expect(await machine.sh("nft list map ip patchbay_localhost links")).toContain('"br0"');
});

test("podman's new bridge is closed for 127.0.0.1, whatever new links are", async () => {
  await using machine = await openMachine();
  await machine.sh("sysctl -qw net.ipv4.conf.default.route_localnet=1");
  const link = await byPodman(machine, await machine.container());
  expect(await machine.sh(`cat /proc/sys/net/ipv4/conf/${link}/route_localnet`)).toBe("0\n");
});

for (
  const [name, conf] of [
    ["bridge", onBridge],
    ["ptp", { type: "ptp", ipam }],
  ] as const
) {
  test(`${name}: CHECK succeeds where ADD could only warn, because /proc/sys is read-only`, async () => {
    await using machine = await openMachine();
    await machine.sh(`sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.default.accept_ra=1; ${readOnly}`);
    const container = await machine.container(), net = network(machine, conf);
    const { code, stderr } = await net.call("ADD", container);
    expect([code, stderr.includes("accept_ra is 1, not 0")]).toEqual([0, true]);
    await net.check(container);
  });
}

test("where the bridge forwards IPv6, the kernel accepts advertisements only with 2", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, { type: "bridge", bridge: "br0", ipam });
  await net.add(container);
  const set = (value: number) =>
    machine.sh(`cd /proc/sys/net/ipv6/conf/br0; echo 1 > forwarding; echo ${value} > accept_ra`);
  await set(1);
  await net.check(container);
  await set(2);
  expect((await net.call("CHECK", container)).json.msg).toContain("net.ipv6.conf.br0.accept_ra is 2, not 0");
});

test("a link without IPv6 has nothing to refuse, and one whose keys are not found is told", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add br0 mtu 1000 type bridge");
  const net = network(machine, { type: "bridge", bridge: "br0", mtu: 1000 });
  expect(await net.call("ADD", await machine.container())).toMatchObject({ code: 0, stderr: "" });
  await machine.sh("mount -t tmpfs tmpfs /proc/sys/net/ipv4/conf");
  const { code, stderr } = await net.call("ADD", await machine.container());
  expect(code).toBe(0);
  expect(stderr).toContain("net.ipv4.conf.br0.accept_redirects is missing, so a container may change the routes");
});

test("CHECK fails while the bridge accepts advertisements", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), net = network(machine, { type: "bridge", bridge: "br0", ipam });
  await net.add(container);
  await net.check(container);
  await machine.sh("echo 2 > /proc/sys/net/ipv6/conf/br0/accept_ra");
  expect((await net.call("CHECK", container)).json.msg).toContain("net.ipv6.conf.br0.accept_ra is 2, not 0");
});

const toldOf = (link: string, value: number) =>
  `patchbay: net.ipv6.conf.${link}.accept_ra is ${value}, not 0, so a container may change the routes of this host: `;

for (
  const { name, conf } of [
    { name: "bridge", conf: { type: "bridge", bridge: "br0" } },
    { name: "ptp", conf: { type: "ptp", ipam: { type: "host-local", subnet: "10.20.0.0/24" } } },
  ]
) {
  for (const value of [0, 1]) {
    test(`${name}: where /proc/sys is read-only, links that accept advertisements are told, and others not: ${value}`, async () => {
      await using machine = await openMachine();
      await machine.sh(`
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.default.accept_ra=${value}
        sysctl -qw net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.default.accept_redirects=0
        ${readOnly}`);
      const { code, json, stderr } = await network(machine, conf).call("ADD", await machine.container());
      expect([code, stderr.includes(toldOf(json.interfaces[0].name, value))]).toEqual([0, value === 1]);
      if (value === 0) expect(stderr).toBe("");
    });
  }
}

test("podman's bridge: the same, also one that is there already, and not one that it does not manage", async () => {
  await using machine = await openMachine();
  await machine.sh(`
    sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.default.rp_filter=2
    ip link add made type bridge; ip link add theirs type bridge
    ${readOnly}`);
  const spec = { isManaged: true, isInternal: false, gateways: [], hasV6: false, filtersVlans: false };
  const specs = [{ name: "new", ...spec }, { name: "made", ...spec }, { name: "theirs", ...spec, isManaged: false }];
  const stderr: string[] = [];
  const steps = specs.map((spec) => ({ verb: "apply" as const, kind: "podman-bridge", spec }));
  expect(await drive(machine, steps, {}, stderr)).toEqual([{ isCreated: true, mayBeOpen: false }, {
    isCreated: false,
    mayBeOpen: true,
    given: { gateways: [], notForwarding: [], up: true, vlanFiltering: false },
  }, {
    isCreated: false,
    mayBeOpen: true,
    given: { gateways: [], notForwarding: [], up: false, vlanFiltering: false },
  }]);
  expect(stderr.join("")).toContain(toldOf("new", 1));
  expect(stderr.join("")).toContain(toldOf("made", 1));
  expect(stderr.join("")).not.toContain("theirs");
});

test("podman's bridge: systemd sets the same for a new link, also where an older file says something else", async () => {
  await using machine = await openMachine();
  const path = "/run/sysctl.d/10-netavark-podman8.conf";
  await machine.sh(`mkdir /run/sysctl.d; echo "net/ipv4/conf/podman8/route_localnet = 1" > ${path}`);
  const base = { name: "podman8", isManaged: true, isInternal: false, gateways: [], filtersVlans: false };
  for (const hasV6 of [true, false]) {
    const step = { kind: "sysctl-file", spec: { ...base, hasV6 } };
    const outcomes = await drive(machine, [{ verb: "verify", ...step }, { verb: "apply", ...step }, {
      verb: "verify",
      ...step,
    }]);
    expect(outcomes).toEqual([[`${path} has other lines`], { isCreated: false }, []]);
    const text = await machine.sh(`cat ${path}`);
    for (const key of [v6, v4].map((of) => of("podman8"))) expect(text).toContain(`${key} = 0\n`);
    expect(text).not.toContain("route_localnet");
  }
});

test("without IPv6 there is nothing to refuse", async () => {
  await using machine = await openMachine();
  // What stands for a kernel without it: no key below net/ipv6.
  await machine.sh("mount -t tmpfs tmpfs /proc/sys/net/ipv6");
  const { code, stderr } = await network(machine, { type: "bridge", bridge: "br0" }).call(
    "ADD",
    await machine.container(),
  );
  expect([code, stderr]).toEqual([0, ""]);
});

test("only redirects of version 4 are for the whole host, and its other links go on as they say themselves", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add up0 type veth peer name far");
  await network(machine, { type: "bridge", bridge: "br0" }).add(await machine.container());
  const read = "cd /proc/sys/net/ipv4/conf; cat all/accept_redirects br0/accept_redirects up0/accept_redirects";
  expect(await machine.sh(read)).toBe("0\n0\n1\n");
});
