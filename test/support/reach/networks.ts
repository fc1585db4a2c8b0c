/** The networks of each column of matrix.ts, made as an engine makes them. */
import { expect } from "bun:test";
import type { PodmanNetwork } from "../../../src/interop/podman-documents/netavark.schema.ts";
import { attach, bridgeNetwork, containerIn, published } from "../netavark/attached.ts";
import { type Network, network } from "../network.ts";
import { PATIENT, startOpenVswitch } from "../open-vswitch.ts";
import { families, type Family, type Table } from "./matrix.ts";
import { hostPorts, PORT, type Town } from "./town.ts";

/** What a column says, in one of the ways to have it. */
export interface Round {
  name: string;
  places: readonly string[];
  /** Makes the networks, and attaches the places to them. */
  build(town: Town, ingressPolicy?: string): Promise<void>;
}

type Backend = "nftables" | "iptables";

/** The link plugin's configuration, the number of its subnets, and what comes after it. */
interface Link {
  conf: Record<string, unknown> & { type: string };
  number: number;
  families?: readonly Family[];
  backend?: Backend;
}

const subnet = (number: number, family: Family) => family === 4 ? `10.${number}.0.0/24` : `fd${number}::/64`;

/** `gateway`: the last part of its address, where it is not the host. */
function ipamFor(number: number, of: readonly Family[], gateway?: string) {
  const ranges = of.map((family) => {
    const own = subnet(number, family);
    return [{ subnet: own, ...gateway !== undefined && { gateway: gatewayIn(number, family, gateway) } }];
  });
  return { type: "host-local", ranges, routes: of.map((family) => ({ dst: family === 4 ? "0.0.0.0/0" : "::/0" })) };
}

const gatewayIn = (number: number, family: Family, part: string) =>
  family === 4 ? `10.${number}.0.${part}` : `fd${number}::${part}`;

/** Attaches the place with a chain of the link's plugin, portmap and, for a policy, firewall. */
async function join(town: Town, place: string, link: Link, ingressPolicy?: string, gateway?: string): Promise<void> {
  const { conf, number, backend } = link, name = `net${number}`;
  const container = town.machine.containers.find((one) => one.name === place)!;
  const ipam = ipamFor(number, link.families ?? families, gateway);
  let prevResult = await network(town.machine, { ...conf, name, ipam }).add(container);
  const then = async (next: Parameters<typeof network>[1]): Promise<Network> => {
    const net = network(town.machine, { ...next, name, backend, prevResult });
    prevResult = await net.add(container);
    return net;
  };
  const hostPort = hostPorts[place];
  if (backend !== undefined && hostPort !== undefined) {
    const portMappings = ["tcp", "udp", "sctp"].map((protocol) => ({ protocol, hostPort, containerPort: PORT }));
    await then({ type: "portmap", runtimeConfig: { portMappings } });
  }
  if (ingressPolicy !== undefined) await then({ type: "firewall", ingressPolicy });
}

const onBridge = (bridge: string, more: object = {}) => ({ type: "bridge", bridge, isGateway: true, ...more });

/** Another than the other one, where they are crossed. */
const backendsOf: Record<string, [Backend, Backend]> = {
  nftables: ["nftables", "nftables"],
  iptables: ["iptables", "iptables"],
  crossed: ["nftables", "iptables"],
};

/** In the virtual machine, where all takes ten times as long, the networks of both backends stand for the others. */
const backends = Object.entries(backendsOf).filter(([name]) => !process.env.PATCHBAY_TEST_VM || name === "crossed");

/** The links of a kind by their places; `number` makes networks. */
type Kind = (own: Backend, other: Backend) => Record<string, Link>;

const bridges = (more: object, others: (own: Backend, other: Backend) => Record<string, Link> = () => ({})): Kind =>
(
  own,
  other,
) => {
  const first: Link = { conf: onBridge("br-a", more), number: 21, backend: own };
  return {
    a: first,
    b: first,
    s: { conf: { ...onBridge("br-a", more), isGateway: false }, number: 22, backend: other },
    ...others(own, other),
    c: { conf: onBridge("br-c", more), number: 24, backend: other },
    x: { conf: onBridge("br-x", more), number: 26, backend: own, families: [4] },
    y: { conf: onBridge("br-y", more), number: 27, backend: own, families: [6] },
  };
};

const kinds: Record<string, Kind> = {
  bridge: bridges({}),
  "bridge with vlan": bridges({ vlan: 7 }, (_own, other) => ({
    v: { conf: onBridge("br-a", { vlan: 8 }), number: 23, backend: other },
  })),
  "bridge with portIsolation": bridges({ portIsolation: true }),
  ptp(own, other) {
    const first: Link = { conf: { type: "ptp" }, number: 21, backend: own };
    return {
      a: first,
      b: first,
      c: { ...first, number: 24, backend: other },
      x: { ...first, number: 26, families: [4] },
      y: { ...first, number: 27, families: [6] },
    };
  },
};

const usual: Link = { conf: onBridge("br-n"), number: 25 };

function byPolicy(kind: Kind, ingressPolicy: string, asksAboutBridged: boolean): Round[] {
  return backends.map(([name, [own, other]]) => {
    const links = kind(own, other);
    return {
      name,
      places: [...Object.keys(links), "n"],
      async build(town) {
        if (asksAboutBridged) {
          await town.machine.sh("for key in /proc/sys/net/bridge/bridge-nf-call-ip*tables; do echo 1 > $key; done");
        }
        for (const [place, link] of Object.entries(links)) {
          await join(town, place, link, ingressPolicy);
          if (place === "a" && links["s"] !== undefined) await addGateway(town, link.conf["vlan"]);
        }
        await join(town, "n", usual);
      },
    };
  });
}

/** A bridge has the gateway of one network from the plugin, and that of another from the host's owner. */
async function addGateway({ machine }: Town, vlan: unknown): Promise<void> {
  const link = vlan === undefined ? "br-a" : `br-a.${vlan}`;
  await machine.sh(`
    ip address add ${gatewayIn(22, 4, "1")}/24 dev ${link}
    ip address add ${gatewayIn(22, 6, "1")}/64 dev ${link} nodad`);
}

/** Links on a master: the world is on it, too, and is their gateway. */
function onMaster(type: string): Round {
  const of = (vlanId: number) => ({ type, master: "up0", ...type === "vlan" && { vlanId } });
  const first: Link = { conf: of(7), number: 21 };
  const links: Record<string, Link> = type === "vlan"
    ? { a: first, v: { conf: of(8), number: 23 } }
    : { a: first, b: first, s: { ...first, number: 22 } };
  return {
    name: "one master",
    places: [...Object.keys(links), "n"],
    async build(town, ingressPolicy) {
      for (const { conf, number } of new Set(Object.values(links))) {
        const tag = conf["vlanId"], facing = tag === undefined ? "eth0" : `eth0.${tag}`;
        await town.machine.sh(`
          ${tag === undefined ? "" : `ip -n out link add link eth0 name ${facing} type vlan id ${tag}`}
          ip -n out link set ${facing} up
          ip -n out address add ${gatewayIn(number, 4, "254")}/24 dev ${facing}
          ip -n out address add ${gatewayIn(number, 6, "254")}/64 dev ${facing} nodad
          ip route add ${subnet(number, 4)} dev up0; ip route add ${subnet(number, 6)} dev up0`);
      }
      if (type === "vlan") town.links["out"] = "eth0.7";
      for (const [place, link] of Object.entries(links)) await join(town, place, link, ingressPolicy, "254");
      await join(town, "n", usual);
    },
  };
}

function onSwitch(name: string): Round {
  const of = (number: number, vlan: number): Link => ({
    conf: { type: "ovs", bridge: "ovs0", vlan, ...PATIENT },
    number,
  });
  const links = { a: of(21, 5), b: of(21, 5), s: of(22, 5), v: of(23, 6) };
  return {
    name,
    places: [...Object.keys(links), "n"],
    async build(town, ingressPolicy) {
      const ovs = await startOpenVswitch(town.machine);
      await (name === "kernel" ? ovs.vsctl("add-br", "ovs0") : ovs.addBridge("ovs0"));
      await town.machine.sh(
        `ip link set ovs0 up; ip route add ${subnet(21, 4)} dev ovs0; ip route add ${subnet(21, 6)} dev ovs0`,
      );
      for (const [place, link] of Object.entries(links)) await join(town, place, link, ingressPolicy, "254");
      await join(town, "n", usual);
    },
  };
}

const podmanKinds: Record<string, Partial<PodmanNetwork>> = {
  "isolate=false": { options: { isolate: "false" } },
  "isolate=true": { options: { isolate: "true" } },
  "isolate=strict": { options: { isolate: "strict" } },
  internal: { internal: true },
};

function byPodman(more: Partial<PodmanNetwork>): Round {
  const subnets = (number: number) => [
    { subnet: `10.8${number}.0.0/24`, gateway: `10.8${number}.0.1` },
    { subnet: `fd00:${number}::/64`, gateway: `fd00:${number}::1` },
  ];
  const networks: Record<string, PodmanNetwork> = {
    a: bridgeNetwork(1, more),
    b: bridgeNetwork(1, more),
    c: bridgeNetwork(2, more),
    x: bridgeNetwork(3, { ...more, ipv6_enabled: false, subnets: subnets(3).slice(0, 1) }),
    y: bridgeNetwork(4, { ...more, subnets: subnets(4).slice(1) }),
    n: bridgeNetwork(5, podmanKinds["isolate=false"]),
  };
  return {
    name: "nftables",
    places: Object.keys(networks),
    async build({ machine }) {
      for (const [index, [place, network]] of Object.entries(networks).entries()) {
        const hostPort = hostPorts[place], container = machine.containers.find(({ name }) => name === place)!;
        const ports = hostPort === undefined
          ? []
          : ["tcp", "udp", "sctp"].map((protocol) => published(hostPort, PORT, { protocol }));
        const input = containerIn([{ network }], index + 1, ports);
        expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
      }
      // Somebody who sets the host's own switches anew changes nothing of it.
      for (const value of [0, 1]) {
        await machine.sh(`sysctl -qw net.ipv4.ip_forward=${value} net.ipv6.conf.all.forwarding=${value}`);
      }
    },
  };
}

export function roundsOf({ name, unasked }: Pick<Table, "name" | "unasked">, column: string): Round[] {
  const kind = kinds[unasked?.name ?? name], podman = podmanKinds[column];
  if (kind !== undefined) return byPolicy(kind, column, unasked !== undefined);
  if (podman !== undefined) return [byPodman(podman)];
  if (column === "ovs") return [onSwitch("process")];
  return [column.startsWith("ovs") ? onSwitch("kernel") : onMaster(column)];
}
