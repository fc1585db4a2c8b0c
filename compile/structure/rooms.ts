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
      "frontends",
      "engine",
      "plugins/table.ts",
      "services/dhcp/service/daemon.ts",
      "process/resident-by-call.ts",
      "ffi",
    ],
  },
  {
    name: "frontends/library",
    what: "what programs for Bun import: the runtime as typed functions",
    mayImport: ["runtime", "engine", "contract", "process", "ffi", "cni", "node:fs"],
  },
  {
    name: "frontends/cli",
    what: "the command line of the runtime: its words, its commands, what they show",
    mayImport: [
      "frontends/answers",
      "frontends/hook",
      "frontends/resident",
      "install",
      "runtime",
      "conformance",
      "engine",
      "plugins/table.ts",
      "contract",
      "services",
      "ipam",
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "frontends/resident",
    what: "a process that stays and serves calls: its protocol with the launcher, workers, whom it serves",
    mayImport: [
      "engine",
      "plugins/table.ts",
      "contract",
      "services/daemon",
      "interop/firewalld/client.ts",
      "interop/iptables",
      "process",
      "ffi",
      "cni",
    ],
  },
  {
    name: "frontends/hook",
    what: "this program as a hook of OCI runtimes: a container's annotations become attachments",
    mayImport: ["runtime", "engine", "contract", "process", "ffi", "cni", "net"],
  },
  {
    name: "frontends/podman",
    what: "this program as a driver of podman's networks: any CNI network becomes one",
    mayImport: [
      "frontends/answers",
      "runtime",
      "engine",
      "interop/podman-documents",
      "contract",
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "frontends/netavark",
    what: "this program in netavark's place: podman's networks without CNI",
    mayImport: [
      "frontends/answers",
      "runtime",
      "engine",
      "plugins",
      "resources",
      "interop/podman-documents",
      "contract",
      "services/dhcp",
      "interop/firewalld",
      "interop/iptables",
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "frontends/answers",
    what: "what a caller is told: errors with their next step, and an ADD that is answered or taken back",
    mayImport: ["runtime", "contract", "process", "ffi", "cni"],
  },
  {
    name: "install",
    what: "what puts the program on a host: links to it, backups, units, what an uninstall asks first",
    mayImport: ["engine", "resources/table.ts", "services/service.ts", "contract", "process", "ffi", "cni"],
  },
  {
    name: "runtime",
    what: "whole networks: their files, chains of plugins, the result cache, lint, GC",
    mayImport: ["engine", "plugins/table.ts", "contract", "ipam", "process", "ffi", "cni", "net"],
  },
  {
    name: "conformance",
    what: "the specification's demands on a plugin, and a host of its own for each, where it is asked",
    mayImport: ["plugins/table.ts", "process", "ffi", "cni", "net"],
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
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "plugins",
    what: "a folder a plugin, each the story of its ADD in resources; their table",
    mayImport: [
      "resources",
      "interop/podman-documents",
      "contract",
      "services/dhcp",
      "ipam",
      "interop/ovsdb/server-address.ts",
      "interop/iptables",
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "resources",
    what: "what plugins make, by theme: a kind a file; their table",
    mayImport: [
      "contract",
      "interop/firewalld",
      "interop/ovsdb",
      "interop/iptables",
      "process",
      "ffi",
      "cni",
      "net",
    ],
  },
  {
    name: "services/table.ts",
    what: "the processes that stay: what the command line, install and packages know of each",
    mayImport: ["services"],
  },
  {
    name: "services/resident.ts",
    what: "the resident's row of services/table.ts",
    mayImport: ["services/service.ts", "process"],
  },
  {
    name: "services/dhcp",
    what:
      "DHCP: messages, the life of a lease, the service that holds leases, their journal, how a plugin asks for one",
    mayImport: ["contract", "services/service.ts", "services/daemon", "process", "ffi", "cni", "net"],
  },
  { name: "services/service.ts", what: "what a row of services/table.ts says", mayImport: [] },
  {
    name: "contract",
    what: "what engine, plugins and resources agree on: plugin, resource, host, trace, undo, failures",
    mayImport: ["process", "ffi", "cni", "net"],
  },
  {
    name: "interop/podman-documents",
    what: "podman's documents: networks, containers, what netavark and its drivers return; free subnets",
    mayImport: ["cni", "net"],
  },
  {
    name: "ipam",
    what: "address ranges and the lease store of host-local",
    mayImport: ["process", "ffi", "cni", "net"],
  },
  {
    name: "interop/firewalld",
    what: "the message bus, and firewalld's part on it",
    mayImport: ["process", "ffi"],
  },
  {
    name: "interop/ovsdb",
    what: "Open vSwitch's database: its protocol and its values",
    mayImport: ["process", "ffi", "net"],
  },
  {
    name: "interop/iptables",
    what: "iptables' rules as data, written to nf_tables or to the older tables",
    mayImport: ["process", "ffi", "net"],
  },
  {
    name: "services/daemon",
    what: "what a process that stays begins with: its signals, its listener, its service manager, how it waits",
    mayImport: ["ffi"],
  },
  {
    name: "process",
    what:
      "how this process behaves: waiting, locks, signals, state files, other programs, what it prints; its version",
    mayImport: ["ffi", "cni", "../package.json"],
  },
  {
    name: "ffi",
    what: "the C library and the kernel's interfaces: files, namespaces, processes, netlink",
    mayImport: ["net", "bun:ffi"],
  },
  { name: "cni", what: "the protocol as data: versions, configurations, results, errors", mayImport: ["net"] },
  {
    name: "net",
    what: "addresses, prefixes, MAC addresses; rules of nf_tables as data, and what they do with a packet",
    mayImport: [],
  },
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
    const used = mayImport.filter((each) =>
      ["frontends", "services"].includes(each) || roomOf(each, names) !== undefined
    );
    const title = name.endsWith(".ts") ? name : `${name}/`;
    return [`${title.padEnd(26)}${what}`, ...used.length > 0 ? [`${" ".repeat(4)}→ ${used.join(", ")}`] : []];
  });
  return ["```", ...lines, "```"].join("\n");
}

/** The longest of the `names` that contains the path. */
export function roomOf(path: string, names: readonly string[]): string | undefined {
  return names.filter((name) => path === name || path.startsWith(`${name}/`)).sort((a, b) => b.length - a.length)[0];
}
