/** The configuration of the firewall plugin. */
import { z } from "zod";
import { commonKeys } from "../../../cni/config.schema.ts";

export type FirewallConf = z.infer<typeof firewallConf>;

export const firewallConf = z.object({
  ...commonKeys,
  backend: z.string().default("").meta({
    description: "The firewall in which forwarding is allowed; by default firewalld if it runs, otherwise iptables.",
    enum: ["", "iptables", "firewalld", "nftables"],
  }),
  iptablesAdminChainName: z.string().default("").meta({
    description: "An iptables chain whose rules precede those of the containers.",
    default: "CNI-ADMIN",
  }),
  firewalldZone: z.string().default("").meta({
    description: "The firewalld zone that gets the addresses.",
    default: "trusted",
  }),
  ingressPolicy: z.string().default("").meta({
    description:
      "From which links with a policy packets come to the containers: all, their own, or none. What a bridge passes on by itself counts with br_netfilter only.",
    enum: ["", "open", "same-bridge", "isolated"],
    default: "open",
  }),
}).meta({ title: "CNI firewall plugin configuration", required: ["cniVersion", "name", "type"] });
