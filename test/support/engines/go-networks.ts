/**
 * Networks of engines that are not in Debian, as their sources and installers write them, and how each calls go-cni with
 * them.
 */
import type { GoCall, Settings } from "./go-engine.ts";

export interface EngineInGo {
  name: string;
  networks: Settings["networks"];
  leastNetworks?: number;
  /** Names of plugins in their directory, when they are not the plugins' own. */
  prefix?: string;
  /** The names of the container's interfaces that have an address. */
  ifNames: readonly string[];
  /** Where host-local has the leases. */
  leases: readonly string[];
  /** It reads the first file of a directory, after go-cni's network for loopback, as containerd does for kubelets. */
  file?: object;
  /** What the host has anew after each boot. */
  perBoot?: { path: string; text: string };
  /** The call's labels and capabilities for the container of that number. */
  ofContainer?: (id: string, index: number) => Pick<GoCall, "labels" | "capabilities">;
  /** It calls DEL without a namespace before every ADD. */
  removesFirst?: true;
}

/** An address of the host's own that ports are published on. */
export const HOST_IP = "192.0.2.1";
export const hostPortOf = (index: number) => 20_000 + index;
const CONTAINER_PORT = 8080;

const anyRoute = [{ dst: "0.0.0.0/0" }];
const portmap = { type: "portmap", capabilities: { portMappings: true } };

function published(index: number, more: { protocol?: string; hostIP?: string } = {}) {
  return { hostPort: hostPortOf(index), containerPort: CONTAINER_PORT, protocol: "tcp", hostIP: "", ...more };
}

const podLabels = (id: string) => ({
  IgnoreUnknown: "1",
  K8S_POD_NAMESPACE: "default",
  K8S_POD_NAME: `pod-${id}`,
  K8S_POD_INFRA_CONTAINER_ID: id,
  K8S_POD_UID: "3c9f2a0e-8f5f-4c07-a2f6-5f3f8a1f2b60",
});

export const nomad: EngineInGo = {
  name: "Nomad",
  networks: [{
    cniVersion: "0.4.0",
    name: "nomad",
    plugins: [
      { type: "loopback" },
      {
        type: "bridge",
        bridge: "nomad",
        ipMasq: true,
        isGateway: true,
        forceAddress: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "172.26.64.0/20" }]],
          routes: anyRoute,
          dataDir: "/var/run/cni",
        },
      },
      { type: "firewall", backend: "iptables", iptablesAdminChainName: "NOMAD-ADMIN" },
      { ...portmap, snat: true },
    ],
  }],
  ifNames: ["eth0"],
  leases: ["/var/run/cni/nomad"],
  ofContainer: (_, index) => ({
    capabilities: {
      portMappings: ["tcp", "udp"].map((protocol) => published(index, { protocol, hostIP: HOST_IP })),
    },
  }),
};

const ofNerdctl = (name: string, third: number) => ({
  cniVersion: "1.0.0",
  name,
  nerdctlID: `17f29b073143d8cd97b5bbe492bdeffec1c5fee55cc1fe2112c8b9335f8b612${third}`,
  nerdctlLabels: { "nerdctl/default-network": String(third === 0) },
  plugins: [
    {
      type: "bridge",
      bridge: `nerdctl${third}`,
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      capabilities: { ips: true },
      ipam: {
        ranges: [[{ gateway: `10.4.${third}.1`, subnet: `10.4.${third}.0/24` }]],
        routes: anyRoute,
        type: "host-local",
      },
    },
    portmap,
    { type: "firewall", ingressPolicy: "same-bridge" },
    { type: "tuning" },
  ],
});

export const nerdctl: EngineInGo = {
  name: "nerdctl",
  networks: [ofNerdctl("bridge", 0)],
  ifNames: ["eth0"],
  leases: ["/var/lib/cni/networks/bridge"],
  ofContainer: (id, index) => ({
    labels: { IgnoreUnknown: "1", NERDCTL_CNI_DHCP_HOSTNAME: id.slice(0, 12) },
    capabilities: { portMappings: [published(index, { hostIP: "0.0.0.0" })] },
  }),
  removesFirst: true,
};

/** `nerdctl network create`, and `nerdctl run` with both. */
export const nerdctlsSecond: EngineInGo = {
  ...nerdctl,
  networks: [ofNerdctl("second", 1)],
  leases: ["/var/lib/cni/networks/second"],
};
export const nerdctlsBoth: EngineInGo = {
  ...nerdctl,
  networks: [...nerdctl.networks, ...nerdctlsSecond.networks],
  ifNames: ["eth0", "eth1"],
  leases: [...nerdctl.leases, ...nerdctlsSecond.leases],
};

export const faasd: EngineInGo = {
  name: "faasd",
  networks: ["loopback", {
    cniVersion: "0.4.0",
    name: "openfaas-cni-bridge",
    plugins: [
      {
        type: "bridge",
        bridge: "openfaas0",
        isGateway: true,
        ipMasq: true,
        ipam: { type: "host-local", subnet: "10.62.0.0/16", dataDir: "/var/run/cni", routes: anyRoute },
        resolvConf: "/etc/resolv.conf",
      },
      { type: "firewall" },
    ],
  }],
  ifNames: ["eth1"],
  leases: ["/var/run/cni/openfaas-cni-bridge"],
  ofContainer: () => ({ labels: {} }),
};

export const buildkit: EngineInGo = {
  name: "buildkit",
  networks: [{
    cniVersion: "1.0.0",
    name: "buildkit",
    plugins: [
      { type: "buildkit-cni-loopback" },
      {
        type: "buildkit-cni-bridge",
        bridge: "buildkit0",
        isDefaultGateway: true,
        ipMasq: true,
        ipam: { type: "buildkit-cni-host-local", ranges: [[{ subnet: "10.10.0.0/16" }]] },
      },
      { type: "buildkit-cni-firewall", ingressPolicy: "same-bridge" },
    ],
  }],
  prefix: "buildkit-cni-",
  ifNames: ["eth0"],
  leases: ["/var/lib/cni/networks/buildkit"],
};

const ofConcourse = (subnet: string, route: string) => ({
  name: "concourse",
  cniVersion: "0.4.0",
  plugins: [
    {
      type: "bridge",
      bridge: "concourse0",
      isGateway: true,
      ipMasq: true,
      ipam: { type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: subnet }, { dst: route }] },
    },
    { type: "firewall", iptablesAdminChainName: "CONCOURSE-OPERATOR" },
  ],
});

/** Two networks of one name on one bridge, for the two versions of IP. */
export const concourse: EngineInGo = {
  name: "Concourse",
  networks: [ofConcourse("10.80.0.0/16", "0.0.0.0/0"), "loopback", ofConcourse("fd9c:31a6:c759::/64", "::/0")],
  ifNames: ["eth0", "eth2"],
  leases: ["/var/lib/cni/networks/concourse"],
};

export const kindnet: EngineInGo = {
  name: "kindnet",
  networks: ["loopback", "directory"],
  file: {
    cniVersion: "0.3.1",
    name: "kindnet",
    plugins: [
      {
        type: "ptp",
        ipMasq: false,
        ipam: {
          type: "host-local",
          dataDir: "/run/cni-ipam-state",
          routes: anyRoute,
          ranges: [[{ subnet: "10.244.0.0/24" }]],
        },
        mtu: 1500,
      },
      portmap,
    ],
  },
  leastNetworks: 2,
  ifNames: ["eth0"],
  leases: ["/run/cni-ipam-state/kindnet"],
  ofContainer: (id, index) => ({ labels: podLabels(id), capabilities: { portMappings: [published(index)] } }),
};

export const k3s: EngineInGo = {
  name: "k3s",
  networks: ["loopback", "directory"],
  file: {
    name: "cbr0",
    cniVersion: "1.0.0",
    plugins: [
      { type: "flannel", delegate: { hairpinMode: true, forceAddress: true, isDefaultGateway: true } },
      portmap,
      { type: "bandwidth", capabilities: { bandwidth: true } },
    ],
  },
  leastNetworks: 2,
  ifNames: ["eth0"],
  leases: ["/var/lib/cni/networks/cbr0"],
  perBoot: {
    path: "/run/flannel/subnet.env",
    text: "FLANNEL_NETWORK=10.42.0.0/16\nFLANNEL_SUBNET=10.42.0.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
  },
  ofContainer: (id, index) => ({
    labels: podLabels(id),
    capabilities: {
      portMappings: [published(index)],
      bandwidth: { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 4_000_000, egressBurst: 400_000 },
    },
  }),
};

export const containerd: EngineInGo = {
  name: "containerd's CRI",
  networks: ["loopback", "directory"],
  file: {
    cniVersion: "1.0.0",
    name: "containerd-net",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        ipMasq: true,
        promiscMode: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "10.88.0.0/16" }], [{ subnet: "2001:4860:4860::/64" }]],
          routes: [...anyRoute, { dst: "::/0" }],
        },
      },
      portmap,
    ],
  },
  leastNetworks: 2,
  ifNames: ["eth0"],
  leases: ["/var/lib/cni/networks/containerd-net"],
  ofContainer: (id, index) => ({
    labels: podLabels(id),
    capabilities: {
      portMappings: [published(index)],
      dns: { servers: ["10.96.0.10"], searches: ["cluster.local"], options: ["ndots:5"] },
      bandwidth: { ingressRate: 0, ingressBurst: 0, egressRate: 0, egressBurst: 0 },
    },
  }),
};

export const engines = [nomad, nerdctl, faasd, buildkit, concourse, kindnet, k3s, containerd];
