/**
 * ovs on both datapaths, the process ovs-vswitchd and the kernel's module, with the plugins that come after it in a chain:
 * what works, and what is refused because it cannot.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { bytesThrough } from "../support/bytes-through.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { type OpenVswitch, PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { floodServer } from "../support/throughput.ts";
import { ping, serve } from "../support/traffic.ts";

const ipam = {
  type: "host-local",
  ranges: [[{ subnet: "10.20.0.0/24", gateway: "10.20.0.254" }], [{ subnet: "fd20::/64", gateway: "fd20::fe" }]],
  routes: [{ dst: "0.0.0.0/0" }],
};
const ovs0 = { type: "ovs", bridge: "ovs0", ipam, ...PATIENT };

interface Stage {
  machine: Machine;
  ovs: OpenVswitch;
}

let stage: Stage | undefined;
afterEach(async () => {
  await stage?.ovs[Symbol.asyncDispose]();
  await stage?.machine[Symbol.asyncDispose]();
  stage = undefined;
});

/** The host has an address on the bridge's own port, as the containers' gateway. */
async function openStage(datapath: string): Promise<Stage> {
  const machine = await openMachine(), ovs = await startOpenVswitch(machine);
  stage = { machine, ovs };
  await (datapath === "kernel" ? ovs.vsctl("add-br", "ovs0") : ovs.addBridge("ovs0"));
  await machine.sh(
    "ip link set ovs0 up; ip address add 10.20.0.254/24 dev ovs0; ip -6 address add fd20::fe/64 dev ovs0 nodad",
  );
  return stage;
}

const addressOf = ({ ips }: { ips: { address: string }[] }) => ips[0]!.address.replace(/\/.*/, "");
const hostEnd = (result: { interfaces: { name: string }[] }) => result.interfaces[0]!.name;

const datapaths = ["process", "kernel"];

describe.each(datapaths)("datapath: %s", (datapath) => {
  const here = test.skipIf(datapath === "kernel" && lacks("Open vSwitch's datapath"));

  here(
    "TCP and UDP pass within a VLAN, nothing passes between two; checksums and the host's rules",
    async () => {
      const { machine } = await openStage(datapath);
      const [one, two, other] = [await machine.container(), await machine.container(), await machine.container()];
      const net = network(machine, { ...ovs0, vlan: 5 }), address = addressOf(await net.add(one));
      const neighbour = await net.add(two);
      await network(machine, { ...ovs0, vlan: 6 }).add(other);
      for (const protocol of ["tcp", "udp"] as const) {
        await using server = await serve(machine, one, protocol);
        expect(await server.ask(two, address)).toBe(addressOf(neighbour));
      }
      expect(await ping(machine, other, address)).toBe(false);
      expect(await bytesThrough({ machine, at: one, address }, { machine, in: two }, 3_000_000)).toBe(3_000_000);
      const ask =
        `console.log((await import("${import.meta.dir}/../../src/ffi/ethtool.ts")).offloadsTxChecksums("eth0"))`;
      const isOffloaded = await machine.run([process.execPath, "-e", ask], { in: one });
      expect(isOffloaded.stdout.trim()).toBe(String(datapath !== "process"));
      expect(await machine.sh("nft list tables")).toContain("patchbay_ovs");
      await net.check(one);
    },
  );

  here("portmap, firewall and tuning behind ovs", async () => {
    const { machine, ovs } = await openStage(datapath);
    await machine.sh(`
      ip netns add client; ip link add out type veth peer name out netns client; ip link set out up
      ip address add 172.16.0.1/24 dev out; ip -n client address add 172.16.0.2/24 dev out
      ip -n client link set out up; ip -n client route add default via 172.16.0.1
      sysctl -qw net.ipv4.ip_forward=1`);
    const client: Container = { name: "client", netnsPath: "/var/run/netns/client" };
    const plugins = [
      ovs0,
      { type: "firewall" },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
      { type: "tuning", mac: "c2:00:00:00:00:07", mtu: 1400, sysctl: { "net.ipv4.conf.IFNAME.arp_notify": "0" } },
    ];
    await machine.sh(`mkdir -p /run/confs; cat >/run/confs/web.conflist <<'END'
      ${JSON.stringify({ cniVersion: "1.1.0", name: "web", plugins })}
END`);
    const portMappings = [{ hostPort: 8080, containerPort: 7777, protocol: "tcp" }];
    const env = { NETCONFPATH: "/run/confs", CAP_ARGS: JSON.stringify({ portMappings }) };
    const patchbay = async (...args: string[]) => {
      const { code, stdout, stderr } = await machine.run([PATCHBAY, ...args], { env });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout;
    };
    const [container, other] = [await machine.container(), await machine.container()];
    const near = network(machine, { ...ovs0, name: "web" }), rows = await ovs.rows();
    const address = addressOf(JSON.parse(await patchbay("add", "web", container.netnsPath)));
    await near.add(other);
    await using server = await serve(machine, container, "tcp", 7777);
    // The host in between, and masquerading where the answer would come another way.
    expect(await server.ask(client, "172.16.0.1", 8080)).toBe("172.16.0.2");
    expect(await server.ask(undefined, "127.0.0.1", 8080)).toBe("10.20.0.254");
    expect(await server.ask(other, "10.20.0.254", 8080)).toBe("10.20.0.254");
    expect(await server.ask(container, "10.20.0.254", 8080)).toBe("10.20.0.254");
    expect(await server.ask(client, address, 7777)).toBe("172.16.0.2");
    expect(JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0]).toMatchObject({
      address: "c2:00:00:00:00:07",
      mtu: 1400,
    });
    await patchbay("check", "web", container.netnsPath);
    expect(await patchbay("inspect")).not.toContain("differs");
    await patchbay("repair", "web", container.netnsPath);
    expect(await server.ask(client, "172.16.0.1", 8080)).toBe("172.16.0.2");
    await patchbay("del", "web", container.netnsPath);
    await near.del(other);
    expect(await ovs.rows()).toEqual(rows);
  });

  here("bandwidth behind ovs: limits hold, also when Open vSwitch has set up its ports again", async () => {
    const { machine, ovs } = await openStage(datapath), container = await machine.container();
    const prevResult = await network(machine, ovs0).add(container), name = hostEnd(prevResult);
    const ingress = { ingressRate: RATE_BITS, ingressBurst: BURST_BITS };
    const egress = { egressRate: RATE_BITS / 2, egressBurst: BURST_BITS };
    const limits = { ...ingress, ...datapath === "kernel" ? egress : {} };
    const net = network(machine, { type: "bandwidth", ...limits, prevResult });
    await net.add(container);
    expect(await ping(machine, container, "10.20.0.254")).toBe(true);
    for (const disturb of [async () => {}, () => setUpAgain(name), restart]) {
      await disturb();
      await net.check(container);
      await expectLimit("receive", container, RATE_BITS);
      if (datapath === "kernel") await expectLimit("send", container, RATE_BITS / 2);
    }
    // With other queueing disciplines of the containers there, nothing is taken from them.
    const another = await machine.container();
    await network(machine, ovs0).add(another);
    await net.check(container);
    await net.del(container);
    expect(JSON.parse(await machine.sh(`tc -j qdisc show dev ${name}`))).toEqual([
      expect.objectContaining({ kind: "noqueue" }),
    ]);
    expect(await ovs.vsctl("--bare", "--columns=type", "list", "qos")).toBe("linux-noop\n");
  });

  const RATE_BITS = 48_000_000, BURST_BITS = 4_000_000, ATTEMPTS = 5;

  /** After the link has changed, Open vSwitch looks at all that it has on it. */
  async function setUpAgain(name: string): Promise<void> {
    const { machine, ovs } = stage!;
    await machine.sh(`ip link set ${name} down; ip link set ${name} up`);
    await ovs.vsctl("add-port", "ovs0", "more", "--", "set", "interface", "more", "type=internal");
  }

  async function restart(): Promise<void> {
    const { machine, ovs } = stage!;
    await ovs.stopSwitch("SIGKILL");
    await ovs.startSwitch();
    await ovs.vsctl("add-port", "ovs0", "after", "--", "set", "interface", "after", "type=internal");
    await machine.sh("ip link set ovs0 up; ip address replace 10.20.0.254/24 dev ovs0");
  }

  /** Too slow may be a machine with other things to do; too fast never. */
  async function expectLimit(verb: "receive" | "send", container: Container, bits: number): Promise<void> {
    await using server = await floodServer(stage!.machine);
    const measurement = { verb, address: "10.20.0.254", skip: BURST_BITS / 4, windowMs: 500 } as const;
    let share = 0;
    for (let attempt = 0; attempt < ATTEMPTS && share < 0.8; attempt++) {
      share = await server.measure(container, measurement) * 8 / bits;
    }
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(1.3);
  }

  here("what Open vSwitch does not let the host see is refused, and nothing is left", async () => {
    const { machine } = await openStage(datapath), container = await machine.container();
    const prevResult = await network(machine, ovs0).add(container), before = await quietMoment(machine);
    const refused = async (conf: Record<string, unknown> & { type: string }) =>
      (await network(machine, { ...conf, prevResult }).call("ADD", container)).json;
    const name = hostEnd(prevResult);
    for (const ingressPolicy of ["isolated", "same-bridge"]) {
      expect(await refused({ type: "firewall", ingressPolicy })).toMatchObject({
        code: 7,
        msg:
          `"ingressPolicy": "${ingressPolicy}" has no effect: ${name} is a port of Open vSwitch, which forwards without the host's rules`,
      });
    }
    if (datapath === "process") {
      expect(await refused({ type: "bandwidth", egressRate: 8_000_000, egressBurst: 800_000 })).toMatchObject({
        code: 7,
        msg:
          `"egressRate" has no effect on ${name}: ovs-vswitchd takes the container's packets before the kernel limits them`,
      });
    }
    expect(await leftSince(before, machine)).toEqual([]);
  });
});

test.skipIf(!lacks("Open vSwitch's datapath"))(
  "a kernel without the module: ADD says so, and nothing is left",
  async () => {
    const { machine, ovs } = await openStage("process"), container = await machine.container();
    // ovs-vswitchd cannot make it, and ovs-vsctl would wait.
    await ovs.vsctl("--no-wait", "add-br", "ovs1");
    const before = await quietMoment(machine), rows = await ovs.rows();
    const { json } = await network(machine, { ...ovs0, bridge: "ovs1" }).call("ADD", container);
    expect(json).toMatchObject({
      msg: "bridge ovs1 has no datapath: Open vSwitch has not made it",
      details:
        "load the kernel module openvswitch and start ovs-vswitchd, or: ovs-vsctl set bridge ovs1 datapath_type=netdev",
    });
    expect(await ovs.rows()).toEqual(rows);
    expect(await leftSince(before, machine, /last_reserved_ip/)).toEqual([]);
  },
);
