/** The configuration of the portmap plugin. */
import { z } from "zod";
import { commonKeys, runtimeConfigOf } from "../../../cni/config.schema.ts";

const port = z.int().meta({ minimum: 1, maximum: 65535 });

export type PortmapConf = z.infer<typeof portmapConf>;

export const portmapConf = z.object({
  ...commonKeys,
  backend: z.string().default("").meta({
    description: "Where mappings are written; by default iptables if the host has it.",
    enum: ["", "iptables", "nftables"],
  }),
  snat: z.boolean().optional().meta({
    description: "Give connections from the container itself, its subnet and 127.0.0.1 the host's address.",
    default: true,
  }),
  masqAll: z.boolean().default(false).describe("Give all connections to mapped ports the host's address."),
  markMasqBit: z.int().optional().meta({
    minimum: 0,
    maximum: 31,
    description: "For iptables: the bit of the mark that selects those connections.",
    default: 13,
  }),
  externalSetMarkChain: z.string().optional().describe("For iptables: a chain that sets such a mark instead."),
  conditionsV4: z.array(z.string()).optional().describe(
    "Further matches for packets, in the syntax of iptables or nft.",
  ),
  conditionsV6: z.array(z.string()).optional().describe("Like conditionsV4, for IPv6."),
  runtimeConfig: runtimeConfigOf({
    portMappings: z.array(
      z.object({
        hostPort: port.default(0).describe("The host's port."),
        containerPort: port.default(0).describe("The container's port."),
        protocol: z.string().default("tcp").meta({
          enum: ["tcp", "udp", "sctp"],
          description: "The ports' protocol.",
        }),
        hostIP: z.string().default("").describe("The host's address; without it, any."),
      }).meta({ required: ["hostPort", "containerPort"] }),
    ).optional().describe("Ports of the host that lead to the container."),
  }),
}).meta({ title: "CNI portmap plugin configuration", required: ["cniVersion", "name", "type"] });
