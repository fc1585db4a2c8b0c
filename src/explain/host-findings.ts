/** What concerns the whole host, and stops containers sooner or later. */
import type { KnownAttachment } from "../engine/operator/known-attachment.ts";
import type { AttachmentIndex } from "./attachment-index.ts";
import type { Code } from "./codes.ts";
import type { NetnsFacts } from "./facts.ts";
import { forwardingReset } from "./forwarding-reset.ts";

export interface HostFinding {
  code: Code;
  text: string;
}

/** What a person types for a container. */
export type NameOf = (attachment: KnownAttachment) => string;

export function hostFindings(host: NetnsFacts, index: AttachmentIndex, nameOf: NameOf): HostFinding[] {
  return [
    ...addressesTwice(index, nameOf),
    ...forwardingResets(),
    ...tablesNearlyFull(host),
    ...bridgesNearlyFull(host),
    ...twoBackends(host),
  ];
}

/** Two containers may have one name. */
export function nameAndId(attachment: KnownAttachment, nameOf: NameOf): string {
  const name = nameOf(attachment), { containerId } = attachment;
  return containerId.startsWith(name) ? name : `${name} (${containerId.slice(0, 12)})`;
}

function addressesTwice({ holders }: AttachmentIndex, nameOf: NameOf): HostFinding[] {
  return [...holders].flatMap(([address, all]): HostFinding[] => {
    const differing = new Map(all.map((one) => [`${one.containerId} ${one.network}`, one]));
    const names = [...differing.values()].map((one) => `${nameAndId(one, nameOf)} of ${one.network}`);
    return names.length < 2 ? [] : [{ code: "address-twice", text: `${address} is given to ${names.join(" and ")}` }];
  });
}

function forwardingResets(): HostFinding[] {
  const text = forwardingReset();
  return text === undefined ? [] : [{ code: "forwarding-reset", text }];
}

const NEARLY = 0.9;

function tablesNearlyFull(host: NetnsFacts): HostFinding[] {
  const numberAt = (key: string) => Number(host.sysctl(key) ?? NaN), found: HostFinding[] = [];
  for (const family of [4, 6] as const) {
    const most = numberAt(`net/ipv${family}/neigh/default/gc_thresh3`);
    // The host's own are a part of all: where they fill the table, it is full.
    const count = most > 0 ? host.neighbours(family) : 0;
    if (count > most * NEARLY) {
      found.push({ code: "neighbours-full", text: `${count} of ${most} neighbours of IPv${family} are taken` });
    }
  }
  const connections = numberAt("net/netfilter/nf_conntrack_count"), most = numberAt("net/netfilter/nf_conntrack_max");
  if (connections > most * NEARLY) {
    found.push({ code: "connections-full", text: `${connections} of ${most} connections are taken` });
  }
  return found;
}

const MOST_PORTS = 1023;

function bridgesNearlyFull(host: NetnsFacts): HostFinding[] {
  const links = host.links();
  return links.filter(({ kind }) => kind === "bridge").flatMap(({ index, name }): HostFinding[] => {
    const ports = links.filter(({ master }) => master === index).length;
    return ports > MOST_PORTS * NEARLY
      ? [{ code: "bridge-full", text: `${name} has ${ports} of ${MOST_PORTS} ports` }]
      : [];
  });
}

function twoBackends(host: NetnsFacts): HostFinding[] {
  const judging = (host.rules()?.chains ?? []).filter(({ rules, base }) =>
    rules.length > 0 || base?.policy === "drop"
  );
  const older = [
    ...new Set(judging.filter(({ isLegacy }) => isLegacy).map(({ family, table }) => `${family} ${table}`)),
  ];
  const hasNew = judging.some(({ isLegacy, family, table }) =>
    !isLegacy && (family === "ip" || family === "ip6") && TABLES_OF_IPTABLES.includes(table)
  );
  if (older.length === 0 || !hasNew) return [];
  return [{ code: "two-backends", text: `iptables-legacy has rules in ${older.join(", ")}, and iptables-nft, too` }];
}

const TABLES_OF_IPTABLES = ["filter", "nat", "mangle", "raw", "security"];
