/** Debian's DHCPv6 servers, and what sends router advertisements: radvd, and dnsmasq by itself. */
import type { Site } from "./link.ts";
import { readDnsmasq, readIsc, readKea } from "./leases.ts";
import { OFFER6, type Offer6, PREFIX6 } from "./offer.ts";
import { type Kind, ownCopy, Server, touch, write } from "./server.ts";
import { dnsmasqCommand, keaEnvironment, writeKeaConfig } from "./servers-v4.ts";

const PREFERRED_SECONDS = 20, VALID_SECONDS = 30;

/** A server with router advertisements, which say that addresses are to be asked for. Leases last 120 seconds at least. */
export const dnsmasq6: Kind<Offer6 & { mode?: "" | "slaac" | "ra-stateless" | "ra-names" | "ra-only" }> = {
  name: "dnsmasq6",
  prepare(offer, files) {
    const { range, mode = "", validSeconds = VALID_SECONDS, nameServers = [], searchList = [] } = offer;
    const words = [...(mode === "ra-only" || mode === "ra-stateless" ? [PREFIX6.replace("/64", "")] : range), mode];
    return [
      ...dnsmasqCommand(files),
      "--enable-ra",
      // The link's MTU, seconds between advertisements, and the router's lifetime.
      "--ra-param=s0,mtu:1400,4,60",
      `--dhcp-range=${[...words.filter(Boolean), 64, validSeconds].join()}`,
      ...searchList.map((one) => `--dhcp-option=option6:domain-search,${one}`),
      ...(nameServers.length === 0 ? [] : [
        `--dhcp-option=option6:dns-server,${nameServers.map((one) => `[${one}]`).join()}`,
      ]),
    ];
  },
  // Its sockets are open by then. With "ra-only" it has none for DHCPv6.
  isReady: (running) => running.log().includes("router advertisement enabled"),
  readLeases: readDnsmasq,
};

export const iscDhcpd6: Kind<Offer6> = {
  name: "dhcpd6",
  prepare(offer, files) {
    const { range, preferredSeconds = PREFERRED_SECONDS, validSeconds = VALID_SECONDS, nameServers = [] } = offer;
    write(files.config, [
      "db-time-format local;",
      `default-lease-time ${validSeconds};`,
      `preferred-lifetime ${preferredSeconds};`,
      ...(offer.renewSeconds === undefined ? [] : [`option dhcp-renewal-time ${offer.renewSeconds};`]),
      ...(offer.rebindSeconds === undefined ? [] : [`option dhcp-rebinding-time ${offer.rebindSeconds};`]),
      `subnet6 ${PREFIX6} {`,
      `  range6 ${range.join(" ")};`,
      ...(nameServers.length === 0 ? [] : [`  option dhcp6.name-servers ${nameServers.join(", ")};`]),
      ...(offer.searchList ?? []).map((one) => `  option dhcp6.domain-search "${one}";`),
      "}",
    ]);
    touch(files.leases);
    const plain = [ownCopy("dhcpd", files), "-6", "-f", "-d", "--no-pid"];
    return [...plain, "-cf", files.config, "-lf", files.leases, "s0"];
  },
  isReady: (running) => /^Server starting service/m.test(running.log()),
  readLeases: readIsc,
};

export const kea6: Kind<Offer6> = {
  name: "kea-dhcp6",
  prepare(offer, files) {
    const { range, preferredSeconds = PREFERRED_SECONDS, validSeconds = VALID_SECONDS } = offer;
    const data = (offer.nameServers ?? []).join(", "), search = (offer.searchList ?? []).join(", ");
    const options = [{ name: "dns-servers", data }, { name: "domain-search", data: search }];
    const subnet = {
      subnet: PREFIX6,
      interface: "s0",
      "rapid-commit": offer.rapidCommit ?? false,
      pools: [{ pool: range.join(" - ") }],
      "option-data": options.filter((one) => one.data !== ""),
    };
    const dhcp = {
      "interfaces-config": { interfaces: ["s0"] },
      "preferred-lifetime": preferredSeconds,
      "valid-lifetime": validSeconds,
      ...(offer.renewSeconds === undefined ? {} : { "renew-timer": offer.renewSeconds }),
      ...(offer.rebindSeconds === undefined ? {} : { "rebind-timer": offer.rebindSeconds }),
      "server-id": { type: "LL", persist: false },
      subnet6: [subnet],
    };
    writeKeaConfig("Dhcp6", dhcp, files);
    return [ownCopy("kea-dhcp6", files), "-c", files.config];
  },
  env: keaEnvironment,
  isReady: (running) => running.log().includes("DHCP6_STARTED"),
  readLeases: readKea,
};

export interface Advertisement {
  /** The flags M and O: ask for addresses, or for other settings, by DHCPv6. */
  isManaged?: boolean;
  hasOther?: boolean;
  /** The flag A of the prefix: hosts make themselves addresses. True unless given. */
  isAutonomous?: boolean;
  mtu?: number;
  preferredSeconds?: number;
  validSeconds?: number;
  /** The lifetime of the router; 0 means no router. */
  routerSeconds?: number;
  nameServers?: readonly string[];
  searchList?: readonly string[];
  routes?: readonly string[];
}

const onOff = (is: boolean | undefined) => (is ? "on" : "off");

export const radvd: Kind<Advertisement> = {
  name: "radvd",
  prepare(offer, { config, pid }) {
    const { nameServers = [], searchList = [], routes = [], routerSeconds = 20, mtu } = offer;
    const preferred = offer.preferredSeconds ?? PREFERRED_SECONDS, valid = offer.validSeconds ?? VALID_SECONDS;
    const each = (list: readonly string[], kind: string, text: string) =>
      list.length === 0 ? [] : [`  ${kind} ${list.join(" ")} { ${text} };`];
    write(config, [
      "interface s0 {",
      "  AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;",
      `  AdvDefaultLifetime ${routerSeconds};`,
      `  AdvManagedFlag ${onOff(offer.isManaged)}; AdvOtherConfigFlag ${onOff(offer.hasOther)};`,
      ...(mtu === undefined ? [] : [`  AdvLinkMTU ${mtu};`]),
      `  prefix ${PREFIX6} {`,
      `    AdvAutonomous ${onOff(offer.isAutonomous ?? true)};`,
      `    AdvValidLifetime ${valid}; AdvPreferredLifetime ${preferred};`,
      "  };",
      ...each(nameServers, "RDNSS", "AdvRDNSSLifetime 20;"),
      ...each(searchList, "DNSSL", "AdvDNSSLLifetime 20;"),
      ...routes.flatMap((route) => each([route], "route", "AdvRouteLifetime 20;")),
      "};",
    ]);
    return ["radvd", "--nodaemon", "--logmethod=stderr", `--config=${config}`, `--pidfile=${pid}`];
  },
  isReady: (running) => /version .* started/.test(running.log()),
};

export const SERVERS6 = [dnsmasq6, iscDhcpd6, kea6];

/** Starts a server; answers when it serves. */
export async function serve6(kind: Kind<Offer6>, site: Site, offer: Offer6 = OFFER6): Promise<Server<Offer6>> {
  return await Server.open(kind, site, offer);
}

export async function advertise(site: Site, advertisement: Advertisement = {}): Promise<Server<Advertisement>> {
  return await Server.open(radvd, site, advertisement);
}
