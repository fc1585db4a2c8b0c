/** A host with two networks, whose containers and neighbours are asked for real, and then explained. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { commandsOn } from "../support/commands.ts";
import { type Container, openMachine } from "../support/machine.ts";
import { serve, type Server } from "../support/traffic.ts";
import { UPLINK } from "../support/way-out.ts";
import { asking, explaining, type Judged } from "./judged.ts";

export interface Town extends Judged, AsyncDisposable {
  patchbay(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** As after `add`, whatever others have done. */
  reset(): Promise<void>;
}

const ADDRESSES: Record<string, string> = {
  outside: "198.18.0.2",
  web: "10.40.0.2",
  jug: "10.40.0.3",
  far: "10.41.0.2",
  host: "198.18.0.1",
};

const NETWORKS = {
  shop: [{
    type: "bridge",
    bridge: "shop0",
    isGateway: true,
    ipMasq: true,
    ipam: {
      type: "host-local",
      ranges: [[{ subnet: "10.40.0.0/24" }], [{ subnet: "fd40::/64" }]],
      routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
    },
  }, { type: "portmap", capabilities: { portMappings: true } }],
  farm: [{
    type: "bridge",
    bridge: "farm0",
    isGateway: true,
    ipam: { type: "host-local", ranges: [[{ subnet: "10.41.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
  }],
};

export async function openTown(networks: Record<string, object[]> = NETWORKS): Promise<Town> {
  const machine = await openMachine(), directory = mkdtempSync(`${tmpdir()}/town-`);
  for (const [name, plugins] of Object.entries(networks)) {
    writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
  }
  const { patchbay, must } = commandsOn(() => machine, () => directory);
  const containers: Record<string, Container> = {};
  for (const name of ["outside", "web", "jug", "far"]) containers[name] = await machine.container(name);
  await machine.sh(`${UPLINK}; ip -n outside link set lo up; ip -n jug link set lo up
    ip -n outside route add 10.41.0.0/24 via 198.18.0.1`);
  await must("add", "shop", "web", "--ports", "8080:80");
  await must("add", "shop", "jug", "--ports", "127.0.0.1:8090:80");
  await must("add", "farm", "far");
  const servers: [Container | undefined, number][] = [
    [containers["outside"], 7000],
    [containers["web"], 80],
    [containers["jug"], 80],
    [containers["far"], 80],
    [undefined, 53],
  ];
  const open: Server[] = [];
  for (const [place, port] of servers) {
    for (const protocol of ["tcp", "udp"] as const) open.push(await serve(machine, place, protocol, port));
  }
  const loopback = machine.start([
    "nsenter",
    `--net=${containers["jug"]!.netnsPath}`,
    process.execPath,
    "-e",
    LOOPBACK_ONLY,
  ]);
  await loopback.stdout.getReader().read();
  const askers = Object.fromEntries(["tcp", "udp"].map((protocol, at) => [protocol, open[at]!]));
  const firstSysctls = await machine.sh(`for each in ${SYSCTLS}; do sysctl $each 2>/dev/null || :; done`);
  return {
    machine,
    patchbay,
    explain: explaining(patchbay),
    isAnswered: asking(machine, { containers, addresses: ADDRESSES, askers }),
    async reset() {
      await machine.sh(`nft flush ruleset; nft delete table ip filter 2>/dev/null || :
        ip neighbour flush all
        echo '${firstSysctls}' | sysctl -q -p - || :`);
      await patchbay(["repair"]);
    },
    async [Symbol.asyncDispose]() {
      loopback.kill();
      for (const server of open) await server[Symbol.asyncDispose]();
      await machine[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
}

const LOOPBACK_ONLY = 'Bun.listen({ hostname: "127.0.0.1", port: 82, socket: { data() {} } }); console.log("ready")';

const SYSCTLS = [
  "net.ipv4.ip_forward",
  "net.ipv4.conf.shop0.forwarding",
  "net.ipv4.conf.eth1.forwarding",
  "net.ipv4.conf.all.rp_filter",
  "net.ipv4.conf.eth1.rp_filter",
  "net.ipv4.conf.shop0.rp_filter",
  "net.ipv6.conf.all.forwarding",
  "net.ipv6.conf.shop0.force_forwarding",
  "net.ipv6.conf.eth1.force_forwarding",
  "net.ipv4.conf.all.route_localnet",
  "net.ipv4.conf.shop0.route_localnet",
  "net.bridge.bridge-nf-call-iptables",
].join(" ");

/** nft(8) wants lines. */
export const nft = (text: string) => `nft '${text.replaceAll(" }", "\n}").replaceAll("; ", "\n")}'`;
