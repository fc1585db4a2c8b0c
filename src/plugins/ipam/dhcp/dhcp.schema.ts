/** The part of a network configuration that dhcp reads. */
import { z } from "zod";
import { ipamKeys, ipamPluginKeys, route } from "../../../cni/config.schema.ts";

const address = z.string().meta({ format: "ipv4", examples: ["192.0.2.1"] });
const optionName = z.string().meta({ examples: ["host-name", "user-class", "43"] });

/** `judge` looks at the texts: Go's plugin ignores routes, so DEL has to work with malformed ones. */
const judgedRoute = route.extend({
  dst: z.string().optional().meta({
    description: "The destination in CIDR notation.",
    format: "cidr",
    examples: ["10.3.0.0/16", "fd00::/64"],
  }),
  gw: z.string().optional().meta({
    description: "The next hop; without it, the lease's router or, where there is none, the link itself.",
    format: "ip",
    examples: ["10.244.0.1", "fd00::1"],
  }),
}).meta({ required: ["dst"] });

export type DhcpConf = z.infer<typeof dhcpConf>;

export const dhcpConf = z.object({
  ...ipamPluginKeys,
  bridge: z.string().optional().describe("The main plugin's: the host's link, by which DEL reaches the server."),
  master: z.string().optional().describe("The main plugin's: the host's link, by which DEL reaches the server."),
  ipam: ipamKeys({
    daemonSocketPath: z.string().optional().meta({
      description: "Where the service listens.",
      default: "/run/cni/dhcp.sock",
    }),
    dataDir: z.string().optional().meta({
      description: "Where the service keeps the leases. DEL needs it while no service runs.",
      default: "/var/lib/cni/dhcp",
    }),
    request: z.array(z.object({
      option: optionName.optional().describe("The option, by name or number."),
      skipDefault: z.boolean().optional().describe("Ask only for the options that are listed."),
    })).optional().describe("Options to ask the server for, before the usual ones."),
    provide: z.array(z.object({
      option: optionName.optional().describe("The option, by name or number."),
      value: z.string().optional().describe("The option's bytes as text."),
      hex: z.string().optional().meta({
        description: "The option's bytes in hexadecimal digits.",
        pattern: "^([0-9A-Fa-f]{2})+$",
      }),
      fromArg: z.string().optional().describe("A key of CNI_ARGS, whose value wins."),
    })).optional().describe("Options to send to the server."),
    priority: z.int().default(0).describe("The metric of all routes that have none of their own."),
    routes: z.array(judgedRoute).optional()
      .describe("Routes beside the server's. For the same destination, these count."),
    clientId: z.string().optional().meta({
      default: "container",
      description:
        "Who the server takes the container for: container (id, network and interface), mac, name (namespace and pod), duid (RFC 4361), none, text:… or hex:… word for word.",
      examples: ["container", "mac", "name", "duid", "none", "text:web-1", "hex:0102"],
    }),
    hostname: z.string().optional().describe("The host name to tell the server."),
    servers: z.array(address).optional().describe("Only these servers are believed."),
    denyServers: z.array(address).optional().describe("These servers are never believed."),
    acd: z.string().optional().meta({
      default: "fast",
      description: "How to find out whether another host has the address: none, fast (one probe) or full (RFC 5227).",
      enum: ["none", "fast", "full"],
    }),
    ipv4: z.boolean().default(true).describe("Whether the container gets an IPv4 address."),
    ipv6: z.boolean().default(false).describe("Whether the container gets an IPv6 address, by DHCPv6."),
    required: z.array(z.string().meta({ enum: ["ipv4", "ipv6"] })).optional()
      .describe("What ADD fails without: both, when both are wanted and nothing else is said."),
    timeout: z.int().optional().meta({ description: "Seconds until ADD gives up.", minimum: 1 }),
    broadcast: z.boolean().optional().describe(
      "Ask servers for answers that every host of the link receives. ipvlan always does.",
    ),
    ignore: z.array(z.string().meta({ enum: ["routers", "routes", "dns", "mtu"] })).optional()
      .describe("What not to take from the server."),
    onExpiry: z.string().optional().meta({
      default: "remove",
      description: "What to do with the address when the lease is over: remove it, set the link down, or keep it.",
      enum: ["remove", "down", "keep"],
    }),
  }),
}).meta({ title: "CNI network configuration with dhcp IPAM", required: ["cniVersion", "name", "ipam"] });
