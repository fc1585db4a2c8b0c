/** Rules of iptables, by the name of the golden file with what iptables-nft sends for them. */
import type { Family, IptablesRule } from "../../../src/interop/iptables/rule.ts";
import { multicast4, multicast6 } from "../../../src/ffi/netlink/nftables/packet-match.ts";
import { parseAddress, parsePrefix } from "../../../src/net/address.ts";
import { commandOf } from "../../support/golden.ts";

const comment = 'name: "mynet" id: "ctr-0001"';
const net = (text: string) => ({ prefix: parsePrefix(text)! });
const dnat = (address: string, port: number) => ({ dnat: { address: parseAddress(address)!, port } });
export const CHAIN = "CNI-e4c76feec97a77ba32cd962b", DNAT = "CNI-HOSTPORT-DNAT";
const toChain = { jump: CHAIN }, toDnat = { jump: DNAT };
const states = ["ESTABLISHED", "RELATED"] as const;
const mark = { value: 0x2000, mask: 0x2000 };

export const rules: Record<string, IptablesRule> = {
  "iptables-accept": { destination: net("10.88.0.5/16"), comment, target: "ACCEPT" },
  "iptables-accept-21": { destination: net("10.88.13.5/21"), comment, target: "ACCEPT" },
  "iptables-accept-0": { destination: net("10.88.13.5/0"), comment, target: "ACCEPT" },
  "iptables-masquerade": { destination: { prefix: multicast4, not: true }, comment, target: "MASQUERADE" },
  "iptables-jump": { source: net("10.88.0.5/32"), comment, target: toChain },
  "ip6tables-accept": { destination: net("fd00:10:88::5/64"), comment, target: "ACCEPT" },
  "ip6tables-masquerade": { destination: { prefix: multicast6, not: true }, comment, target: "MASQUERADE" },
  "ip6tables-jump": { source: net("fd00:10:88::5/128"), comment, target: toChain },
  "iptables-state": { destination: net("10.88.0.5/32"), states, target: "ACCEPT" },
  "ip6tables-state": { destination: net("fd00::5/128"), states, target: "ACCEPT" },
  "iptables-source-12": { source: { ...net("172.16.0.0/12"), not: true }, target: "RETURN" },
  "iptables-links": {
    inLink: { name: "br0" },
    outLink: { name: "br0", not: true },
    comment: "hello",
    target: "DROP",
  },
  "iptables-links-plus": { inLink: { name: "cni+", not: true }, outLink: { name: "eth0" }, target: "DROP" },
  "ip6tables-links": {
    source: net("fd00::/61"),
    inLink: { name: "br0" },
    outLink: { name: "br0", not: true },
    target: "DROP",
  },
  "iptables-local": { toLocal: true, target: toDnat },
  "iptables-ports": { protocol: "tcp", comment, destinationPorts: [80, 443, 8080], target: toDnat },
  "ip6tables-ports": { protocol: "udp", comment, destinationPorts: [53], target: toDnat },
  "iptables-dnat": {
    protocol: "tcp",
    destinationPort: 8080,
    destination: net("192.0.2.1/32"),
    target: dnat("10.88.0.5", 80),
  },
  "ip6tables-dnat": { protocol: "udp", destinationPort: 53, target: dnat("fd00:10:88::5", 5353) },
  "iptables-dnat-sctp": {
    protocol: "sctp",
    destinationPort: 9,
    source: net("127.0.0.1/32"),
    target: dnat("10.88.0.5", 9),
  },
  "iptables-set-mark": { comment, target: { setMark: mark } },
  "ip6tables-mark": { mark, target: "MASQUERADE" },
  "iptables-mark-whole": { mark: { value: 1, mask: 0xffffffff }, target: "RETURN" },
};

/** Where the command appends to: `iptables -t nat -A POSTROUTING …`. */
export function placeOf(name: string): { family: Family; table: string; chain: string; command: string } {
  const command = commandOf(`nftables/${name}`);
  const [, tool, table, chain] = /^(ip6?tables) -t (\w+) -A (\S+) /.exec(command)!;
  return { family: tool === "iptables" ? 4 : 6, table: table!, chain: chain!, command };
}
