/**
 * The iptables rules of netavark before 2.0, for containers that it attached before this program took its place. They are
 * only removed, never written. The rules of a container:
 *
 *     -A NETAVARK-HOSTPORT-DNAT -p tcp --dport 8080 -m comment --comment "dnat name: N id: C" -j NETAVARK-DN-…
 *     -A NETAVARK-DN-… -s 10.88.0.0/16 -p tcp --dport 8080 -j NETAVARK-HOSTPORT-SETMARK    and from 127.0.0.1
 *     -A NETAVARK-DN-… -p tcp --dport 8080 -j DNAT --to-destination 10.88.0.5:80
 *
 * And the rules of a network, whose chains end with 13 digits of its name's hash:
 *
 *     -A POSTROUTING -s 10.88.0.0/16 -j NETAVARK-…
 *     -A NETAVARK_FORWARD -d 10.88.0.0/16 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
 *     -A NETAVARK_FORWARD -s 10.88.0.0/16 -j ACCEPT
 *     -A NETAVARK_ISOLATION_1 -i podman1 ! -o podman1 -j NETAVARK_ISOLATION_2
 *     -A NETAVARK_ISOLATION_2 -o podman1 -j DROP
 */
import type { Host } from "../../../contract/host.ts";
import { changeEveryTable } from "../../../interop/iptables/host-tables.ts";
import { FAMILIES, type Family, type IptablesRule, type Protocol } from "../../../interop/iptables/rule.ts";
import type { TableChange } from "../../../interop/iptables/table.ts";
import { parseAddress, parsePrefix } from "../../../net/address.ts";
import { netfilterOf } from "../../packets/shared/netfilter-socket.ts";

const DNAT = "NETAVARK-HOSTPORT-DNAT", SETMARK = "NETAVARK-HOSTPORT-SETMARK";
const HASH_DIGITS = 13;

/** netavark's name for a network in the names of chains. */
export function networkHash(network: string): string {
  return new Bun.CryptoHasher("sha512").update(network).digest("hex").toUpperCase().slice(0, HASH_DIGITS);
}

interface Container {
  network: string;
  containerId: string;
  targets: readonly { address: string; subnet: string }[];
  ports: readonly { protocol: Protocol; hostPort: number; containerPort: number; range: number }[];
}

export function removeContainerRules(container: Container, host: Host): void {
  const own = `NETAVARK-DN-${networkHash(container.network)}`;
  changeEveryTable(netfilterOf(host), "nat", FAMILIES, false, (table) => {
    if (!table.hasChain(DNAT)) return;
    const comment = `dnat name: ${container.network} id: ${container.containerId}`;
    const jumps = table.jumps(DNAT, own), entries = jumps.filter((rule) => rule.comment === comment);
    for (const rule of entries) table.delete(rule);
    // Without these jumps the rules of a range, which cannot be recognised here, are unreachable.
    if (entries.length === jumps.length) return table.hasChain(own) ? table.deleteChain(own) : undefined;
    deleteAll(table, own, portRules(container, table.family));
  });
}

function portRules({ targets, ports }: Container, family: Family): IptablesRule[] {
  const rules: IptablesRule[] = [], length = family === 4 ? 4 : 16;
  for (const { address, subnet } of targets) {
    const target = parseAddress(address)!;
    if (target.length !== length) continue;
    const loopback = { bytes: parseAddress(family === 4 ? "127.0.0.1" : "::1")!, bits: length * 8 };
    for (const { protocol, hostPort, containerPort, range } of ports) {
      if (range !== 1) continue;
      const match = { protocol, destinationPort: hostPort };
      for (const prefix of [parsePrefix(subnet)!, loopback]) {
        rules.push({ ...match, source: { prefix }, target: { jump: SETMARK } });
      }
      rules.push({ ...match, target: { dnat: { address: target, port: containerPort } } });
    }
  }
  return rules;
}

/** `network` is the network's name. */
export function removeNetworkRules(
  { network, bridge, subnets }: { network: string; bridge: string; subnets: readonly string[] },
  host: Host,
): void {
  const socket = netfilterOf(host), hash = networkHash(network);
  changeEveryTable(socket, "nat", FAMILIES, false, (table) => {
    for (const rule of table.jumps("POSTROUTING", `NETAVARK-${hash}`)) table.delete(rule);
    for (const rule of table.jumps(DNAT, `NETAVARK-DN-${hash}`)) table.delete(rule);
    for (const chain of [`NETAVARK-${hash}`, `NETAVARK-DN-${hash}`]) {
      if (table.hasChain(chain)) table.deleteChain(chain);
    }
  });
  changeEveryTable(socket, "filter", FAMILIES, false, (table) => {
    deleteAll(table, "NETAVARK_FORWARD", forwardRules(subnets, table.family));
    const leaving: IptablesRule = {
      inLink: { name: bridge },
      outLink: { name: bridge, not: true },
      target: "ACCEPT",
    };
    const jumps = ["NETAVARK_ISOLATION_2", "NETAVARK_ISOLATION_3"].map((jump) => ({ ...leaving, target: { jump } }));
    deleteAll(table, "NETAVARK_ISOLATION_1", jumps);
    for (const chain of ["NETAVARK_ISOLATION_2", "NETAVARK_ISOLATION_3"]) {
      deleteAll(table, chain, [{ outLink: { name: bridge }, target: "DROP" }]);
    }
  });
}

function forwardRules(subnets: readonly string[], family: Family): IptablesRule[] {
  return subnets.map((subnet) => parsePrefix(subnet)!).filter(({ bytes }) => (bytes.length === 4) === (family === 4))
    .flatMap((prefix): IptablesRule[] => [
      { destination: { prefix }, states: ["RELATED", "ESTABLISHED"], target: "ACCEPT" },
      { source: { prefix }, target: "ACCEPT" },
    ]);
}

function deleteAll(table: TableChange, chain: string, rules: readonly IptablesRule[]): void {
  if (!table.hasChain(chain)) return;
  for (const found of table.rules(chain)) if (rules.some((rule) => found.is(rule))) table.delete(found);
}
