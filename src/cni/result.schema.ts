/**
 * The result of ADD in its three forms (CNI spec 0.2.0, 0.4.0 and 1.1.0, "Result"), for decoding other programs' output.
 * versions.ts maps versions to forms; result-versions.ts converts.
 *
 * As in config.schema.ts, zod is as tolerant as the reference library, and `meta` says what the specification demands.
 */
import { z } from "zod";
import { address, cidr, dns, macAddress, route, versionText } from "./config.schema.ts";

const cniVersion = versionText.default("").describe("The version of the CNI specification it is written in.");

const addressing = z.object({ ip: cidr, gateway: address.optional(), routes: z.array(route).optional() });

export type Result01 = z.infer<typeof result01>;

/** 0.1.0 and 0.2.0. */
export const result01 = z.object({
  cniVersion,
  ip4: addressing.optional(),
  ip6: addressing.optional(),
  dns: dns.optional(),
});

const oldInterface = z.object({
  name: z.string().default("").describe("Its name where it is."),
  mac: macAddress.optional().describe("Its hardware address."),
  sandbox: z.string().optional().describe("The path of the network namespace it is in; none is the host's."),
});

const oldIp = z.object({
  interface: z.int().optional().meta({ minimum: 0, description: "Which of the interfaces has it." }),
  address: cidr.describe("With the length of its subnet's prefix."),
  gateway: address.optional().describe("The subnet's gateway."),
});

export type Result03 = z.infer<typeof result03>;

/** 0.3.0, 0.3.1 and 0.4.0. */
export const result03 = z.object({
  cniVersion,
  interfaces: z.array(oldInterface).optional(),
  ips: z.array(oldIp.extend({ version: z.string().default("") })).optional(),
  routes: z.array(route).optional(),
  dns: dns.optional(),
});

export type Result10 = z.infer<typeof result10>;

/** 1.0.0 and 1.1.0. */
export const result10 = z.object({
  cniVersion,
  interfaces: z.array(
    oldInterface.extend({
      mtu: z.int().optional().meta({ minimum: 68, maximum: 65535, description: "Its MTU." }),
      socketPath: z.string().optional().describe("A socket that stands for the interface."),
      pciID: z.string().optional().describe("The PCI function behind it."),
    }).meta({ required: ["name"] }),
  ).optional().describe("All interfaces the attachment consists of, on the host and in the container."),
  ips: z.array(oldIp).optional().describe("The addresses given to the container."),
  routes: z.array(route).optional().describe("The routes made in the container."),
  dns: dns.optional(),
}).meta({ title: "CNI result", required: ["cniVersion"] });
