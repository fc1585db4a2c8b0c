/**
 * The shape of network configurations (CNI spec 1.1.0, section 1; conventions for `runtimeConfig` and `args`).
 *
 * One source for two uses. compile/validators.ts compiles plugin schemas into the validators that plugins run: they
 * enforce what zod enforces, and are as tolerant as the reference plugins. It also publishes JSON Schemas for people who
 * write configurations; `meta` (`pattern`, `minLength`, `required`, …) applies only to those.
 */
import { z } from "zod";
import { canonicalAddress, canonicalPrefix, isMappedPrefix } from "../net/address.ts";

type Issue = { input?: unknown };

/** An address with its prefix length, decoded to the text that Go prints. */
export const cidrOr = (message: (text: unknown) => string) =>
  z.string()
    .refine((text) => canonicalPrefix(text) !== undefined, { error: (issue: Issue) => message(issue.input) })
    .overwrite((text) => canonicalPrefix(text)!)
    .meta({ format: "cidr", examples: ["10.244.0.5/24", "fd00::5/64"] });

/** Keeps the text of an IPv4-mapped prefix: ADD rejects it, but DEL must be possible. */
const subnet = z.string()
  .refine((text) => canonicalPrefix(text) !== undefined, {
    error: (issue: Issue) => `invalid CIDR address: ${issue.input}`,
  })
  .overwrite((text) => isMappedPrefix(text) ? text : canonicalPrefix(text)!)
  .meta({ format: "subnet", examples: ["10.244.0.0/24", "fd00::/64"] });

export const cidr = cidrOr((text) => `invalid CIDR address: ${text}`);

/** An address; like in the reference plugins, the empty text means none. */
export const address = z.string()
  .refine((text) => text === "" || canonicalAddress(text) !== undefined, {
    error: (issue: Issue) => `invalid IP address: ${issue.input}`,
  })
  .transform((text) => canonicalAddress(text))
  .meta({ format: "ip", examples: ["10.244.0.1", "fd00::1"] });

/** An address with or without a prefix length. */
export const addressOrCidr = z.string()
  .refine((text) => (canonicalPrefix(text) ?? canonicalAddress(text)) !== undefined, {
    error: (issue: Issue) => `invalid IP address ${issue.input}`,
  })
  .overwrite((text) => (canonicalPrefix(text) ?? canonicalAddress(text))!)
  .meta({ format: "ip-or-cidr", examples: ["10.244.0.5", "10.244.0.5/24"] });

export const versionText = z.string().meta({
  pattern: "^\\d+\\.\\d+\\.\\d+$",
  examples: ["1.1.0", "1.0.0", "0.4.0"],
});

const bitsPerSecond = z.int().meta({ minimum: 0 });
const mtu = z.int().meta({ minimum: 68, maximum: 65535 });

const noMtu = { error: ({ input }: Issue) => `${input} is not an MTU` };

/** The MTU of a new link. 0 or less leaves it to the kernel; the maximum is what the netlink attribute can hold. */
export const linkMtu = z.int().min(Number.MIN_SAFE_INTEGER, noMtu).max(4294967295, noMtu).default(0);

export const ipMasqBackend = z.enum(["iptables", "nftables", ""], {
  error: (issue: Issue) => `unknown ipmasq backend "${issue.input}"`,
}).optional().describe("Where ipMasq is written; without it, iptables if the host has it, otherwise nftables.");

export const macAddress = z.string().meta({
  pattern: "^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$",
  examples: ["0a:58:0a:f4:00:01"],
});

export const dns = z.object({
  nameservers: z.array(z.string()).optional().describe("Addresses of DNS servers, the preferred one first."),
  domain: z.string().optional().describe("The local domain, for short host names."),
  search: z.array(z.string()).optional().describe("Domains to search for short host names, in order."),
  options: z.array(z.string()).optional().describe("Options for the resolver, such as ndots:5."),
}).describe("DNS settings of the container's network, for the result.");

export const route = z.object({
  dst: cidr.describe("The destination in CIDR notation."),
  gw: address.optional().describe("The next hop; without it, the gateway of the address of the same family."),
  mtu: mtu.optional().describe("The path MTU towards the destination."),
  advmss: z.int().optional().meta({ description: "The segment size to advertise to the destination.", minimum: 1 }),
  priority: z.int().optional().meta({ description: "The metric; the lower one wins.", minimum: 0 }),
  table: z.int().optional().meta({ description: "The routing table.", minimum: 0 }),
  scope: z.int().optional().meta({ description: "0 global, 253 link, 254 host.", minimum: 0, maximum: 255 }),
});

export const addressRange = z.object({
  subnet: subnet.optional().describe("The subnet the range belongs to."),
  rangeStart: address.optional().describe(
    "The first address to hand out; without it, the subnet's first usable one.",
  ),
  rangeEnd: address.optional().describe("The last address to hand out; without it, the subnet's last usable one."),
  gateway: address.optional().describe(
    "The gateway's address, which is never handed out; without it, the subnet's first usable one.",
  ),
}).meta({ required: ["subnet"] });

/** Keys that IPAM plugins copy into the result. */
export const ipamRouting = {
  routes: z.array(route).optional().describe("Passed on in the result."),
  resolvConf: z.string().optional().describe("A resolv.conf(5) to read the result's DNS settings from."),
};

/** The values of well-known capabilities; a plugin's `runtimeConfig` has the ones it declares. */
export const capability = {
  ips: z.array(z.string()).describe("Addresses to use, where the plugin demands it with prefix length."),
  ipRanges: z.array(z.array(addressRange)).describe("One list of ranges for each address to allocate."),
  mac: macAddress.describe("The hardware address of the container's interface."),
  portMappings: z.array(
    z.object({
      hostPort: z.int().optional().meta({ minimum: 0, maximum: 65535, description: "The host's port." }),
      containerPort: z.int().meta({ minimum: 1, maximum: 65535, description: "The container's port." }),
      protocol: z.string().optional().meta({
        enum: ["tcp", "udp", "sctp"],
        description: "The ports' protocol.",
        default: "tcp",
      }),
      hostIP: z.string().optional().describe("The host's address; without it, any."),
    }),
  ).describe("Ports of the host that lead to the container."),
  bandwidth: z.object({
    ingressRate: bitsPerSecond.optional().describe("The rate at which the container may receive."),
    ingressBurst: bitsPerSecond.optional().describe("The size of a burst that it receives."),
    egressRate: bitsPerSecond.optional().describe("The rate at which the container may send."),
    egressBurst: bitsPerSecond.optional().describe("The size of a burst that it sends."),
  }).describe("Rates in bits per second, bursts in bits."),
  dns: dns.extend({
    servers: z.array(z.string()).optional().describe("Addresses of DNS servers, as engines pass them."),
    searches: z.array(z.string()).optional().describe("Domains to search, as engines pass them."),
  }).describe("DNS settings that the container asks for."),
  infinibandGUID: z.string().describe("The InfiniBand GUID of the container's interface."),
  deviceID: z.string().describe("The device to lend, by its address on the PCI bus."),
};

const networkName = z.string().meta({ minLength: 1, maxLength: 200, pattern: "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$" })
  .describe("The network's name, unique on the host.");

const pluginType = z.string().meta({ minLength: 1, pattern: "^[^/\\\\]+$" })
  .describe("The plugin: the name of an executable in CNI_PATH.");

const anyObject = z.record(z.string(), z.unknown());

export const ipamType = z.object({ type: pluginType.default("") });

export const validAttachment = z.object({
  containerID: z.string().describe("The container's ID."),
  ifname: z.string().describe("The interface's name in the container."),
});

const fromRuntime = "Generated by the runtime from capabilities.";
const fromCaller = "Optional data from the network or the runtime, by the conventions.";

/** What a plugin reads of `runtimeConfig`. */
export function runtimeConfigOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).optional().describe(fromRuntime);
}

/** What a plugin reads of `args`. */
export function argsOf<Cni extends z.ZodType>(cni: Cni, meaning = "What plugins read.") {
  return z.object({ cni: cni.optional().describe(meaning) }).optional().describe(fromCaller);
}

/** The keys that the specification defines for every plugin. */
export const commonKeys = {
  cniVersion: versionText.default("0.1.0").describe("The version of the CNI specification it is written in."),
  name: networkName,
  type: pluginType.default(""),
  capabilities: z.record(z.string(), z.boolean()).optional().describe("Data the plugin wants from the runtime."),
  ipam: ipamType.optional().meta({
    description: "Which IPAM plugin allocates addresses, with its configuration.",
  }),
  dns: dns.optional(),
  args: anyObject.optional().describe(fromCaller),
  runtimeConfig: anyObject.optional().describe(fromRuntime),
  prevResult: anyObject.optional().describe("Generated by the runtime: the result so far."),
  "cni.dev/valid-attachments": z.array(validAttachment).optional()
    .describe("Generated by the runtime for GC: the attachments that are still valid."),
};

/** What an IPAM plugin reads of `ipam`. */
export function ipamKeys<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object({ type: z.string().default("").describe("The IPAM plugin."), ...shape }).optional()
    .describe("The configuration of the IPAM plugin.");
}

/** IPAM plugins get the configuration of another plugin, and read only these keys of it. */
export const ipamPluginKeys = {
  cniVersion: commonKeys.cniVersion,
  name: commonKeys.name,
  type: commonKeys.type,
  prevResult: commonKeys.prevResult,
  "cni.dev/valid-attachments": commonKeys["cni.dev/valid-attachments"],
};
