/**
 * A machine with containers of every kind that this program makes without hardware of its own: what record-stores.ts
 * records of a release, and what upgrade.test.ts makes again.
 */
import { resolve } from "node:path";
import { dnsmasq, serve4 } from "../support/dhcp/servers-v4.ts";
import { type BridgeSegment, serverBehindBridge } from "../support/dhcp/link.ts";
import type { Running } from "../support/dhcp/running.ts";
import { isListening } from "../support/listening.ts";
import type { Machine } from "../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { PATCHBAY } from "../support/plugins.ts";

const dual = (number: number) => ({
  type: "host-local",
  ranges: [[{ subnet: `10.${number}.0.0/24` }], [{ subnet: `fd${number}::/120` }]],
  quarantineSeconds: 5,
});
const single = (number: number) => ({ type: "host-local", subnet: `10.${number}.0.0/24` });
const mapped = { portMappings: true };

/** In the order of ADD. */
const networks: Record<string, { plugins: Record<string, unknown>[]; options?: string[] }> = {
  web: {
    plugins: [
      {
        type: "bridge",
        bridge: "web0",
        isDefaultGateway: true,
        ipMasq: true,
        ipMasqBackend: "nftables",
        ipam: dual(31),
      },
      { type: "tuning", sysctl: { "net.ipv4.conf.all.log_martians": "1" }, mac: "02:00:00:00:31:01", mtu: 1400 },
      { type: "bandwidth", ingressRate: 8000000, ingressBurst: 800000, egressRate: 8000000, egressBurst: 800000 },
      { type: "firewall", backend: "nftables", ingressPolicy: "same-bridge" },
      { type: "portmap", backend: "nftables", capabilities: mapped },
    ],
    options: ["--ports", "8031:80,127.0.0.1:5331:53/udp"],
  },
  old: {
    plugins: [
      { type: "bridge", bridge: "old0", isGateway: true, ipMasq: true, ipMasqBackend: "iptables", ipam: single(32) },
      { type: "firewall", backend: "iptables" },
      { type: "portmap", backend: "iptables", snat: true, capabilities: mapped },
    ],
    options: ["--ports", "8032:80"],
  },
  far: {
    plugins: [{
      type: "ptp",
      ipMasq: true,
      ipam: { type: "static", addresses: [{ address: "10.33.0.5/24", gateway: "10.33.0.1" }] },
    }],
  },
  near: { plugins: [{ type: "macvlan", master: "m1", ipam: single(34) }, { type: "sbr" }] },
  tapped: { plugins: [{ type: "tap", mac: "02:00:00:00:35:01", ipam: single(35) }] },
  flanneled: {
    plugins: [{ type: "flannel", subnetFile: "/run/conf.d/subnet.env", delegate: { isDefaultGateway: true } }],
  },
  inner: { plugins: [{ type: "loopback" }], options: ["--ifname", "lo"] },
  leased: { plugins: [{ type: "bridge", bridge: "br0", ipam: { type: "dhcp" } }] },
};

const networkNames: readonly string[] = Object.keys(networks);
const CONFIGURATIONS = "/run/conf.d", env = { NETCONFPATH: CONFIGURATIONS };
const podmans = bridgeNetwork(8);
const inPodman = containerIn([{ network: podmans }], 1, [published(8088, 80)]);

export interface Stage extends AsyncDisposable {
  machine: Machine;
  /** The container of a network has its name, and `ctr-` before it for its ID. */
  networkNames: readonly string[];
  /** `patchbay`, which finds the networks. */
  patchbay(...args: string[]): ReturnType<Machine["run"]>;
  /** Attaches a container to each network, and one as podman does. */
  attachAll(): Promise<void>;
  /** Deletes what podman attached. */
  teardown(): Promise<void>;
  startDhcp(): Promise<void>;
  /** Returns what the service has said. */
  stopDhcp(): Promise<string>;
}

export async function openStage(): Promise<Stage> {
  const segment = await serverBehindBridge(), { machine } = segment;
  const conflist = (name: string) => JSON.stringify({ cniVersion: "1.1.0", name, plugins: networks[name]!.plugins });
  await machine.sh(`
    mkdir ${CONFIGURATIONS}
    printf 'FLANNEL_NETWORK=10.36.0.0/16\\nFLANNEL_SUBNET=10.36.7.1/24\\nFLANNEL_MTU=1450\\nFLANNEL_IPMASQ=true\\n' \\
      >${CONFIGURATIONS}/subnet.env
    ip link add m1 type veth peer name m2
    ip link set m1 up; ip link set m2 up
    ${networkNames.map((name) => `echo '${conflist(name)}' >${CONFIGURATIONS}/${name}.conflist`).join("\n")}`);
  await serve4(dnsmasq, segment.site, { range: ["192.168.77.110", "192.168.77.110"], leaseSeconds: 10_000 });
  const patchbay: Stage["patchbay"] = (...args) => machine.run([PATCHBAY, ...args], { env });
  const podman = await machine.container("podman");
  let service: Running | undefined, number = 0;
  return {
    machine,
    networkNames,
    patchbay,
    async attachAll() {
      for (const name of networkNames) {
        await machine.container(name);
        await must(patchbay("add", name, name, "--container-id", `ctr-${name}`, ...networks[name]!.options ?? []));
      }
      await must(attach(machine, "setup", podman, inPodman));
    },
    teardown: () => must(attach(machine, "teardown", podman, inPodman)),
    async startDhcp() {
      service = segment.start(undefined, [PATCHBAY, "dhcp"], { log: logOf(segment, ++number) });
      await service.until(() => isListening(service!, "/run/cni/dhcp.sock"));
    },
    async stopDhcp() {
      await service!.stop();
      return service!.log();
    },
    [Symbol.asyncDispose]: () => segment[Symbol.asyncDispose](),
  };
}

const logOf = ({ folder }: BridgeSegment, number: number) => resolve(folder, `patchbay-dhcp-${number}.log`);

async function must(called: ReturnType<Machine["run"]>): Promise<void> {
  const { code, stdout, stderr } = await called;
  if (code !== 0) throw new Error(`${stdout}${stderr}`);
}
