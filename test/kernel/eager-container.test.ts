/**
 * A container that runs already gets a network, and sends from the first moment of its link to the last. The plugin is slow,
 * so that each moment is long: what confines the link is there before a frame passes, and goes after it.
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { ALL_NODES, BROADCAST, datagram, frame, routerAdvertisement } from "../support/frames.ts";
import { lateWith } from "../support/injection.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { needs } from "../support/needs.ts";
import { attach, bridgeNetwork, containerIn } from "../support/netavark/attached.ts";
import { network } from "../support/network.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { type Call, patchbayPlugins } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";

needs("strace");

const EAGER = resolve(import.meta.dir, "../support/eager-sender.ts");
const FORGED = "02:00:00:00:0b:ad", TYPE = 0x88b5, SECRET_PORT = 9999, LATE_US = 10_000;
/** Every request to the kernel's network, every sysctl, and each end of a child. */
const SLOW = "sendto,sendmsg,openat,wait4";

const advertisement = routerAdvertisement({
  from: FORGED,
  to: ALL_NODES,
  source: "fe80::bad",
  destination: "ff02::1",
}, "2001:db8:bad::");
const toNeighbours = frame(BROADCAST, FORGED, TYPE);
const toHost = datagram(
  { from: FORGED, to: BROADCAST, source: "10.20.0.9", destination: "10.99.0.1" },
  9,
  SECRET_PORT,
);

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
/** With IPv6, the host begins to forward, and forgets routers. */
const ipam4 = { type: "host-local", subnet: "10.20.0.0/24" };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipam };

interface Row {
  name: string;
  needs?: Feature;
  conf: Record<string, unknown> & { type: string };
  /** The configuration of a neighbour, who counts the frames that it gets. */
  neighbour?: Record<string, unknown> & { type: string };
  sends: string;
  prepare?(machine: Machine): Promise<unknown>;
}

const rows: Row[] = [
  { name: "ptp takes no advertisement", conf: { type: "ptp", ipam: ipam4 }, sends: advertisement },
  { name: "bridge takes no advertisement", conf: { ...bridge, ipam: ipam4 }, sends: advertisement },
  {
    name: "macspoofchk keeps frames from another address back",
    conf: { ...bridge, macspoofchk: true },
    neighbour: bridge,
    sends: toNeighbours,
  },
  {
    name: "portIsolation keeps frames from isolated neighbours",
    needs: "isolated bridge ports",
    conf: { ...bridge, portIsolation: true },
    neighbour: { ...bridge, portIsolation: true },
    sends: toNeighbours,
  },
  {
    name: "a VLAN of a bridge keeps frames from its other VLAN",
    needs: "bridge VLAN filtering",
    conf: { ...bridge, vlan: 7, isGateway: false },
    neighbour: { ...bridge, vlan: 1, isGateway: false },
    sends: toNeighbours,
  },
  {
    name: "ovs: the host is no neighbour",
    conf: { type: "ovs", bridge: "ovs0", vlan: 100, ipam, ...PATIENT },
    sends: toHost,
    prepare: async (machine) => await (await startOpenVswitch(machine)).addBridge("ovs0"),
  },
];

/** Counts what must not arrive: the host's datagrams, the neighbour's frames. */
async function watch(machine: Machine, neighbour: Container | undefined): Promise<() => Promise<number>> {
  await machine.sh(`
    ip address replace 10.99.0.1/32 dev lo
    nft -f - <<'END'
    table inet watch {
      counter arrived {}
      chain input { type filter hook input priority 300; udp dport ${SECRET_PORT} counter name arrived; }
    }
END`);
  if (neighbour !== undefined) {
    await machine.sh(
      `nft -f - <<'END'
      table netdev watch {
        counter arrived {}
        chain ingress { type filter hook ingress device eth0 priority 0; ether type ${TYPE} counter name arrived; }
      }
END`,
      { in: neighbour },
    );
  }
  return async () => {
    const host = await machine.sh("nft list counter inet watch arrived");
    const neighbours = neighbour === undefined
      ? ""
      : await machine.sh("nft list counter netdev watch arrived", { in: neighbour });
    return [...`${host}${neighbours}`.matchAll(/packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
  };
}

/** Routes and addresses that the host has learned. */
const learned = (machine: Machine) =>
  machine.sh("ip -6 route show proto ra; ip -6 -o address | grep 2001:db8:bad || true");

async function startEager(machine: Machine, container: Container, frames: string) {
  const sender = machine.start(["ip", "netns", "exec", container.name, process.execPath, EAGER, "eth0", frames]);
  await sender.stdout.getReader().read();
  return {
    async [Symbol.asyncDispose]() {
      sender.kill("SIGKILL");
      await sender.exited;
    },
  };
}

const sentBy = async (machine: Machine, container: Container) => {
  const stats = await machine.sh("ip -j -s link show eth0 2>/dev/null || echo '[]'", { in: container });
  return (JSON.parse(stats)[0]?.stats64.tx.packets ?? 0) as number;
};

for (const row of rows) {
  test.skipIf(lacks(row.needs))(row.name, async () => {
    await using machine = await openMachine();
    await row.prepare?.(machine);
    const bad = await machine.container("bad"), neighbour = row.neighbour && await machine.container("good");
    if (neighbour !== undefined) await network(machine, row.neighbour!).add(neighbour);
    const arrived = await watch(machine, neighbour);
    const call = (command: string, prevResult?: unknown): Call => ({
      plugin: row.conf.type,
      command,
      container: bad,
      conf: { cniVersion: "1.1.0", name: "net", prevResult, ...row.conf },
    });
    await using _ = await startEager(machine, bad, row.sends);
    const added = await lateWith(machine, patchbayPlugins(), call("ADD"), SLOW, LATE_US);
    expect(added).toMatchObject({ code: 0, hit: true });
    // It sends, and so has sent whenever it could.
    await untilTrue(() => sentBy(machine, bad), (count) => count > 10);
    expect(await learned(machine)).toBe("");
    const deleted = await lateWith(machine, patchbayPlugins(), call("DEL", JSON.parse(added.stdout)), SLOW, LATE_US);
    expect(deleted).toMatchObject({ code: 0, hit: true });
    expect(await arrived()).toBe(0);
  });
}

test("podman's bridge takes no advertisement", async () => {
  await using machine = await openMachine();
  const bad = await machine.container("bad");
  await using _ = await startEager(machine, bad, advertisement);
  // With IPv6, the host begins to forward.
  const only4 = { ipv6_enabled: false, subnets: [{ subnet: "10.88.0.0/24", gateway: "10.88.0.1" }] };
  const input = containerIn([{ network: bridgeNetwork(8, only4) }]);
  expect(await attach(machine, "setup", bad, input)).toMatchObject({ code: 0, stderr: "" });
  await untilTrue(() => sentBy(machine, bad), (count) => count > 10);
  expect(await learned(machine)).toBe("");
  expect(await attach(machine, "teardown", bad, input)).toMatchObject({ code: 0, stderr: "" });
});
