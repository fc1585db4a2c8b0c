/** What concerns the whole host, and stops containers sooner or later. */
import type { KnownAttachment } from "../engine/operator/known-attachment.ts";
import type { AttachmentIndex } from "./attachment-index.ts";
import { undefinedOnError } from "../cni/error.ts";
import { exists, namesIn, readConfiguredFile } from "../ffi/files.ts";
import type { Code } from "./codes.ts";
import type { NetnsFacts } from "./facts.ts";

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

/** sysctl.d(5): a file hides one of its name in a later directory, and they are read in the order of their names. */
const SYSCTL_DIRECTORIES = [
  "/etc/sysctl.d",
  "/run/sysctl.d",
  "/usr/local/lib/sysctl.d",
  "/usr/lib/sysctl.d",
  "/lib/sysctl.d",
];
const FORWARDING = /^\s*-?net[./]ipv4[./](?:ip_forward|conf[./]all[./]forwarding)\s*=\s*([01])\s*$/gm;

function forwardingResets(): HostFinding[] {
  const files = new Map<string, string>();
  for (const directory of SYSCTL_DIRECTORIES) {
    for (const name of exists(directory) ? namesIn(directory) : []) {
      if (name.endsWith(".conf") && !files.has(name)) files.set(name, `${directory}/${name}`);
    }
  }
  const inOrder = [...files].sort(([one], [other]) => one < other ? -1 : 1).map(([, path]) => path);
  const last = [...inOrder, "/etc/sysctl.conf"].flatMap((path) => {
    const text = undefinedOnError(() => readConfiguredFile(path)) ?? "";
    const [, value] = [...text.matchAll(FORWARDING)].at(-1) ?? [];
    return value === undefined ? [] : [{ path, value }];
  }).at(-1);
  return last?.value === "0"
    ? [{ code: "forwarding-reset", text: `${last.path} sets net.ipv4.ip_forward to 0` }]
    : [];
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
