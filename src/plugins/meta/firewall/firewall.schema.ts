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
  iptablesAdminChainName: z.string().default("").describe(
    "An iptables chain whose rules precede those of the containers; by default CNI-ADMIN.",
  ),
  firewalldZone: z.string().default("").describe("The firewalld zone that gets the addresses; by default trusted."),
  ingressPolicy: z.string().default("").meta({
    description: "Who may reach the containers: everybody, those on the same bridge, or nobody on any bridge.",
    enum: ["", "open", "same-bridge", "isolated"],
  }),
}).meta({ title: "CNI firewall plugin configuration", required: ["cniVersion", "name", "type"] });
