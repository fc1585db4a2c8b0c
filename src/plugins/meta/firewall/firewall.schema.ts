/** The configuration of the firewall plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type FirewallConf = z.infer<typeof firewallConf>;

export const firewallConf = z.object({
  ...commonKeys,
  backend: z.string().default("").meta({
    description: "Where forwarding is allowed; without it, firewalld where it runs, else iptables.",
    enum: ["", "iptables", "firewalld", "nftables"],
  }),
  iptablesAdminChainName: z.string().default("").describe(
    "A chain of iptables whose rules come before those of the containers; CNI-ADMIN.",
  ),
  firewalldZone: z.string().default("").describe("The zone of firewalld that takes the addresses in; trusted."),
  ingressPolicy: z.string().default("").meta({
    description: "Who may reach the containers: everybody, those on the same bridge, or nobody on any bridge.",
    enum: ["", "open", "same-bridge", "isolated"],
  }),
}).meta({ title: "CNI firewall plugin configuration", required: ["cniVersion", "name", "type"] });
