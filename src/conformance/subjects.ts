/** What is known of plugins by their names: their kind, a configuration, what it needs, which capabilities they have. */
import { servedPath, type ServedPool, servedText } from "../cluster/served-file.ts";
import { parseAddress } from "../net/address.ts";
import { DIRECTORY_OF_ROOT } from "../process/state-directory.ts";
import type { Feature } from "./features.ts";
import type { TrialHost } from "./host.ts";

/** main: makes an interface. ipam: gives addresses. meta: changes what an earlier plugin of a chain has made. */
export const everyKind = ["main", "ipam", "meta"] as const;

export type Kind = (typeof everyKind)[number];

export interface Subject {
  kind: Kind;
  /** Without `cniVersion`, `name` and `type`. */
  conf: Record<string, unknown>;
  /** The same configuration with a single address. */
  confOfOneAddress?: Record<string, unknown>;
  needs?: readonly Feature[];
  /** Prepares the host, before anything is called. */
  prepare?(host: TrialHost): void;
  ifName?: string;
  /** Only one container at a time can have its link, which ends, or comes back, some time after the namespace. */
  attachesOnce?: true;
  /** Values that the result must show. */
  mac?: string;
  ip?: string;
  portMappings?: readonly object[];
  bandwidth?: { ingressRate: number; egressRate: number };
}

const SUBNET = "10.99.0.0/24", ONE = "10.99.0.5", ASKED_IP = "10.99.0.77/24", ASKED_MAC = "02:00:00:00:00:77";

const routes = [{ dst: "0.0.0.0/0" }];
const pool = { type: "host-local", ranges: [[{ subnet: SUBNET }]], routes };
const poolOfOne = { type: "host-local", ranges: [[{ subnet: SUBNET, rangeStart: ONE, rangeEnd: ONE }]], routes };

function withPool(conf: Record<string, unknown>): Pick<Subject, "conf" | "confOfOneAddress"> {
  return { conf: { ...conf, ipam: pool }, confOfOneAddress: { ...conf, ipam: poolOfOne } };
}

const MASTER = "card0";
const withCard = (host: TrialHost) => host.card(MASTER);

const main: Record<string, Subject> = {
  "bridge": {
    kind: "main",
    ...withPool({ bridge: "br0", isGateway: true, ipMasq: true, hairpinMode: true }),
    needs: ["veth links", "bridge links"],
    mac: ASKED_MAC,
    ip: ASKED_IP,
  },
  "dummy": { kind: "main", ...withPool({}), needs: ["dummy links"] },
  "flannel": {
    kind: "main",
    conf: { delegate: { bridge: "br0", isDefaultGateway: true } },
    needs: ["veth links", "bridge links"],
    prepare: (host) =>
      host.write(
        "/run/flannel/subnet.env",
        `FLANNEL_NETWORK=10.99.0.0/16\nFLANNEL_SUBNET=${
          SUBNET.replace(".0/", ".1/")
        }\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n`,
      ),
  },
  "host-device": {
    kind: "main",
    ...withPool({ device: MASTER }),
    attachesOnce: true,
    needs: ["veth links"],
    prepare: withCard,
  },
  "ipvlan": {
    kind: "main",
    ...withPool({ master: MASTER }),
    needs: ["veth links", "ipvlan links"],
    prepare: withCard,
  },
  "loopback": { kind: "main", conf: {}, ifName: "lo" },
  "macvlan": {
    kind: "main",
    ...withPool({ master: MASTER }),
    needs: ["veth links", "macvlan links"],
    prepare: withCard,
    mac: ASKED_MAC,
  },
  "ovs": { kind: "main", ...withPool({ bridge: "br0" }), needs: ["Open vSwitch"] },
  "ptp": { kind: "main", ...withPool({ ipMasq: true }), needs: ["veth links"], ip: ASKED_IP },
  "tap": { kind: "main", ...withPool({}), needs: ["tap links"], mac: ASKED_MAC },
  "vlan": {
    kind: "main",
    ...withPool({ master: MASTER, vlanId: 5 }),
    attachesOnce: true,
    needs: ["veth links", "VLAN links"],
    prepare: withCard,
  },
};

/** As if an agent had a block of these addresses. */
function servedOf(pool: string, first: string, last: string): ServedPool {
  return {
    pool,
    node: "here",
    store: "a file",
    layout: "flat",
    spans: [parseAddress(first)!.toHex() + parseAddress(last)!.toHex()],
    extents: [{ subnet: SUBNET, first, last, blockSize: "256" }],
    routes,
    blocks: { served: 1, ripening: 0, closing: 0, unknown: 0 },
  };
}

const ipam: Record<string, Subject> = {
  "dhcp": { kind: "ipam", conf: { ipam: { type: "dhcp" } }, needs: ["a DHCP server"] },
  "host-local": { kind: "ipam", ...withPool({}), ip: ASKED_IP },
  "patchbay-cluster": {
    kind: "ipam",
    conf: { ipam: { type: "patchbay-cluster", pool: "lan" } },
    confOfOneAddress: { ipam: { type: "patchbay-cluster", pool: "one" } },
    ip: ASKED_IP,
    prepare(host) {
      for (const [pool, first, last] of [["lan", "10.99.0.2", "10.99.0.254"], ["one", ONE, ONE]] as const) {
        host.write(servedPath(DIRECTORY_OF_ROOT, pool), servedText(servedOf(pool, first, last)));
      }
    },
  },
  "static": {
    kind: "ipam",
    conf: { ipam: { type: "static", addresses: [{ address: "10.99.0.9/24", gateway: "10.99.0.1" }] } },
    ip: ASKED_IP,
  },
};

const portMappings = [{ hostPort: 18080, containerPort: 80, protocol: "tcp" }];

const rates = { ingressRate: 8_000_000, ingressBurst: 80_000, egressRate: 16_000_000, egressBurst: 160_000 };

const meta: Record<string, Subject> = {
  "bandwidth": {
    kind: "meta",
    conf: rates,
    needs: ["veth links", "ifb links"],
    bandwidth: rates,
  },
  "firewall": { kind: "meta", conf: { backend: "iptables" }, needs: ["veth links", "nf_tables"] },
  "portmap": {
    kind: "meta",
    conf: { capabilities: { portMappings: true }, snat: true, runtimeConfig: { portMappings } },
    needs: ["veth links", "nf_tables"],
    portMappings,
  },
  "sbr": { kind: "meta", conf: {}, needs: ["veth links"] },
  "tuning": {
    kind: "meta",
    conf: { sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" }, mtu: 1400 },
    needs: ["veth links"],
    mac: ASKED_MAC,
  },
  "vrf": { kind: "meta", conf: { vrfname: "blue" }, needs: ["veth links", "VRF links"] },
};

export const subjects: Readonly<Record<string, Subject>> = { ...main, ...ipam, ...meta };
