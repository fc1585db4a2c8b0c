/** The table of rules that netavark and we share, in a machine: a network and a container's ports, and what nft lists. */
import { expect } from "bun:test";
import { type Machine, openMachine } from "../machine.ts";
import { drive, type Step } from "../resources.ts";

export const orchard = {
  network: "orchard",
  networkId: "5ca1ab1e5ca1ab1e",
  bridge: "podman1",
  subnets: [{ subnet: "10.8.0.0/24" }, { subnet: "fd08::/64" }],
  isInternal: false,
  isolation: "strict",
  dnsPort: 53,
  dnsServers: ["10.8.0.1", "fd08::1"],
};
const owner = { network: "orchard", containerId: "c1", ifName: "eth0" };
const targets = [{ address: "10.8.0.9", subnet: "10.8.0.0/24" }, {
  address: "fd08::9",
  subnet: "fd08::/64",
}];
export const port = { protocol: "tcp", hostPort: 8080, containerPort: 80, range: 1 };
export const ofOne = { ...owner, networkId: orchard.networkId, targets, ports: [port] };

/** Steps with a kind, of which `usual` is a specification. */
export const stepsOf =
  ({ kind }: { kind: string }, usual: object) =>
  (verb: Step["verb"], spec: object = usual, isRestated = false): Step => ({ verb, kind, spec, isRestated });

/** `CHAIN: rule`, in the order of each chain, and at last `MAP: element`. */
export async function listed(machine: Machine): Promise<string[]> {
  const lines: string[] = [], elements: string[] = [];
  let place = "";
  for (const line of (await machine.sh("nft list table inet netavark")).split("\n").map((each) => each.trim())) {
    const [, opened] = /^(?:chain|map) (\S+) \{$/.exec(line) ?? [];
    place = opened ?? place;
    if (opened !== undefined || /^(table .*|\}|)$/.test(line)) continue;
    const found = line.replace(/^elements = \{ /, "").replace(/( \}|,)$/, "").split(/, (?=tcp|udp|sctp)/);
    if (/ : .* \. [0-9]+$/.test(found[0]!)) elements.push(...found.map((each) => `${place}: ${each}`));
    else lines.push(`${place}: ${line}`);
  }
  return [...lines, ...elements.sort()];
}

/** The beginnings of the names of a subnet's chains and map. */
export const of4 = "nv_5ca1ab1e_10_8_0_0_nm24", of6 = "nv_5ca1ab1e_fd08--_nm64";

/** The rules that exist once. */
export const once = [
  "INPUT: type filter hook input priority filter; policy accept;",
  "FORWARD: type filter hook forward priority filter; policy accept;",
  "FORWARD: ct state invalid drop",
  "FORWARD: ct mark & 0x00001000 == 0x00001000 accept",
  "FORWARD: jump NETAVARK-ISOLATION-1",
  "POSTROUTING: type nat hook postrouting priority srcnat; policy accept;",
  "POSTROUTING: meta mark & 0x00002000 == 0x00002000 masquerade",
  "PREROUTING: type nat hook prerouting priority dstnat; policy accept;",
  "PREROUTING: fib daddr type local jump NETAVARK-HOSTPORT-DNAT",
  "OUTPUT: type nat hook output priority -100; policy accept;",
  "OUTPUT: fib daddr type local jump NETAVARK-HOSTPORT-DNAT",
  "NETAVARK-HOSTPORT-SETMARK: meta mark set meta mark | 0x00002000",
  "NETAVARK-ISOLATION-3: jump NETAVARK-ISOLATION-2",
];
/** A machine after one network: what exists once is left. */
export async function openWithTable(rules: ReturnType<typeof stepsOf>): Promise<Machine> {
  const machine = await openMachine();
  expect(await drive(machine, [rules("apply"), rules("remove")])).toEqual(["applied", "removed"]);
  expect(await listed(machine)).toEqual(once);
  return machine;
}
