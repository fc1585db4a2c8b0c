/** What our own rules drop is dropped on purpose: by which option, in the table of each kind. */
import type { Place } from "../net/netfilter/traversal.ts";
import { nameOfTable } from "../ffi/netlink/nftables/table.ts";
import { ownTables } from "../resources/packets/shared/own-tables.ts";

const OPTIONS: Record<keyof typeof ownTables, string> = {
  "masquerade": '"ipMasq" of the network',
  "port-mappings": "the plugin portmap lets nobody else use what it published",
  "localhost-access": "packets for 127.0.0.1 that come from a container are for nobody",
  "firewall": 'the plugin firewall keeps bridges apart: "ingressPolicy"',
  "port-isolation": '"portIsolation" of the bridge keeps its containers apart',
  "mac-spoof-check": '"macspoofchk" of the bridge drops what has another MAC address',
  "host-copy-dropped": "Open vSwitch takes the packet, and not the host",
  "podman-bridge": "the network is an internal one of podman",
};

/** Chains that engines and plugins have for keeping networks apart. */
const APART: [prefix: string, why: string][] = [
  ["CNI-ISOLATION-STAGE-", OPTIONS["firewall"]],
  ["DOCKER-ISOLATION-STAGE-", "Docker keeps its networks apart"],
  ["NETAVARK_ISOLATION_", "netavark keeps networks apart: the option isolate"],
  ["NETAVARK-ISOLATION-", "netavark keeps networks apart: the option isolate"],
];

/** Undefined for rules of others. */
export function optionBehind({ chain: { family, table, name, isLegacy } }: Place): string | undefined {
  const apart = APART.find(([prefix]) => name.startsWith(prefix));
  if (apart !== undefined && family !== "bridge") return apart[1];
  if (isLegacy) return undefined;
  const found = Object.entries(ownTables).find(([, own]) => nameOfTable(own) === `${family} ${table}`);
  return found && OPTIONS[found[0] as keyof typeof ownTables];
}
