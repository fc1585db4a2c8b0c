/**
 * The rooms of src, from top to bottom, and what each may import: rooms below it, single files of them, packages.
 * ARCHITECTURE.md contains the output of `picture`.
 */

export interface Room {
  /** A folder or a file of src. */
  name: string;
  what: string;
  /** Including types and lazy loading. */
  mayImport: readonly string[];
}

export const rooms: readonly Room[] = [
  {
    name: "main.ts",
    what: "the name that this process was called by: a plugin's, or the runtime's",
    mayImport: [
      "resident",
      "podman",
      "netavark",
      "runtime",
      "engine",
      "plugins/table.ts",
      "dhcp/service/daemon.ts",
      "ffi",
    ],
  },
  {
    name: "library",
    what: "what programs for Bun import: the runtime as typed functions",
    mayImport: [
      "runtime",
      "engine",
      "contract",
      "ffi",
      "cni",
      "node:fs",
    ],
  },
  {
    name: "resident",
    what: "a process that stays and serves calls: its protocol with the launcher, workers, whom it serves",
    mayImport: [
      "runtime",
      "engine",
      "plugins/table.ts",
      "contract",
      "daemon",
      "firewalld/client.ts",
      "iptables",
      "ffi",
      "cni",
    ],
  },
  {
    name: "podman",
    what: "this program as a driver of podman's networks: any CNI network becomes one",
    mayImport: ["runtime", "engine", "podman-documents", "contract", "ffi", "cni", "net", "version.ts"],
  },
  {
    name: "netavark",
    what: "this program in netavark's place: podman's networks without CNI",
    mayImport: [
      "runtime",
      "engine",
      "plugins",
      "resources",
      "podman-documents",
      "contract",
      "dhcp",
      "firewalld",
      "iptables",
      "ffi",
      "cni",
      "net",
      "version.ts",
    ],
  },
  {
    name: "runtime",
    what: "whole networks: their files, chains of plugins, the result cache, GC, the command line",
    mayImport: [
      "conformance",
      "engine",
      "plugins/table.ts",
      "resources/table.ts",
      "contract",
      "dhcp/journal",
      "dhcp/service-protocol.ts",
      "dhcp/service/flags.ts",
      "ipam",
      "ffi",
      "cni",
      "net",
      "version.ts",
    ],
  },
  {
    name: "conformance",
    what: "the specification's demands on a plugin, and a host of its own for each, where it is asked",
    mayImport: ["plugins/table.ts", "ffi", "cni", "net"],
  },
  {
    name: "engine",
    what: "one verb of one plugin: telling its story, the ledger, judging, delegation, plan, inspect, repair",
    mayImport: [
      "plugins/table.ts",
      "resources/table.ts",
      "resources/delegated/lease.ts",
      "resources/host-ports/rivals.ts",
      "contract",
      "ffi",
      "cni",
      "net",
      "version.ts",
    ],
  },
  {
    name: "plugins",
    what: "a folder a plugin, each the story of its ADD in resources; their table",
    mayImport: [
      "resources",
      "podman-documents",
      "contract",
      "dhcp",
      "ipam",
      "ovsdb/server-address.ts",
      "iptables",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "resources",
    what: "what plugins make, by theme: a kind a file; their table",
    mayImport: ["contract", "firewalld", "ovsdb", "iptables", "ffi", "cni", "net"],
  },
  {
    name: "dhcp",
    what:
      "DHCP: messages, the life of a lease, the service that holds leases, their journal, how a plugin asks for one",
    mayImport: ["contract", "daemon", "ffi", "cni", "net"],
  },
  {
    name: "contract",
    what: "what engine, plugins and resources agree on: plugin, resource, host, trace, undo, failures",
    mayImport: ["ffi", "cni", "net"],
  },
  {
    name: "podman-documents",
    what: "podman's documents: networks, containers, what netavark and its drivers return; free subnets",
    mayImport: ["cni", "net"],
  },
  { name: "ipam", what: "address ranges and the lease store of host-local", mayImport: ["ffi", "cni", "net"] },
  { name: "firewalld", what: "the message bus, and firewalld's part on it", mayImport: ["ffi"] },
  { name: "ovsdb", what: "Open vSwitch's database: its protocol and its values", mayImport: ["ffi", "net"] },
  {
    name: "iptables",
    what: "iptables' rules as data, written to nf_tables or to the older tables",
    mayImport: ["ffi", "net"],
  },
  {
    name: "daemon",
    what: "what a process that stays begins with: its signals, its listener, its service manager, how it waits",
    mayImport: ["ffi"],
  },
  {
    name: "ffi",
    what: "the C library and the kernel's interfaces: files, namespaces, processes, netlink",
    mayImport: ["net", "bun:ffi"],
  },
  { name: "cni", what: "the protocol as data: versions, configurations, results, errors", mayImport: ["net"] },
  { name: "net", what: "addresses, prefixes, MAC addresses", mayImport: [] },
  { name: "version.ts", what: "the version of this program", mayImport: ["../package.json"] },
];

/** Within ffi/netlink the encoding does not depend on the messages. */
export const foundations: readonly Room[] = [
  { name: "ffi/netlink/wire.ts", what: "bytes", mayImport: [] },
  { name: "ffi/netlink/attrs.ts", what: "attributes", mayImport: ["ffi/netlink/wire.ts"] },
  { name: "ffi/netlink/uapi", what: "numbers", mayImport: ["ffi/netlink/wire.ts", "ffi/netlink/attrs.ts"] },
];

/** Schemas are used by the build only. They may import zod and one another; the code may only import their types. */
export const schemaMayImport = ["zod", "cni", "net"];

/** For ARCHITECTURE.md: each room, its purpose, and the rooms that it imports. */
export function picture(): string {
  const names = rooms.map(({ name }) => name);
  const lines = rooms.flatMap(({ name, what, mayImport }) => {
    const used = mayImport.filter((each) => names.includes(each.split("/")[0]!) || each === "version.ts");
    const title = name.endsWith(".ts") ? name : `${name}/`;
    return [`${title.padEnd(18)}${what}`, ...used.length > 0 ? [`${" ".repeat(4)}→ ${used.join(", ")}`] : []];
  });
  return ["```", ...lines, "```"].join("\n");
}

/** The longest of the `names` that contains the path. */
export function roomOf(path: string, names: readonly string[]): string | undefined {
  return names.filter((name) => path === name || path.startsWith(`${name}/`)).sort((a, b) => b.length - a.length)[0];
}
