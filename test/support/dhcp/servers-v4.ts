/** Debian's DHCPv4 servers. Each is told the same offer, and says in one form who has which address. */
import { writeFileSync } from "node:fs";
import { formatAddress, parsePrefix } from "../../../src/net/address.ts";
import { readDnsmasq, readIsc, readKea, readUdhcpd } from "./leases.ts";
import type { Site } from "./link.ts";
import { coloned, maskOf, OFFER4, type Offer4, optionsOf, SUBNET, value } from "./offer.ts";
import { type Files, type Kind, ownCopy, Server, touch, write } from "./server.ts";

const LEASE_SECONDS = 20, SERVER_PORT = 67;

export const dnsmasq: Kind<Offer4> = {
  name: "dnsmasq",
  prepare(offer, files, site) {
    const { range, subnet = SUBNET, leaseSeconds = LEASE_SECONDS, renewSeconds, rebindSeconds } = offer;
    const times = [
      ...(renewSeconds === undefined ? [] : [`--dhcp-option=option:T1,${renewSeconds}`]),
      ...(rebindSeconds === undefined ? [] : [`--dhcp-option=option:T2,${rebindSeconds}`]),
    ];
    const routerless = offer.routers?.length === 0 ? ["--dhcp-option=3"] : [];
    const options = optionsOf(offer, site.address).map(([code, hex]) =>
      `--dhcp-option=${code},${dnsmasqValue(code, hex)}`
    );
    return [
      ...dnsmasqCommand(files),
      ...(offer.authoritative === false ? [] : ["--dhcp-authoritative"]),
      `--dhcp-range=${range.join()},${maskOf(subnet)},${leaseSeconds}`,
      ...[...times, ...routerless, ...options],
    ];
  },
  isReady: (running) => running.hasBound(SERVER_PORT),
  readLeases: readDnsmasq,
};

/**
 * dnsmasq without DNS, in root's group, because a change of it would let it outlive the test; and without a ping to the
 * address before an offer, which takes three seconds.
 */
export function dnsmasqCommand({ leases, pid }: Files): string[] {
  const plain = [
    "dnsmasq",
    "--keep-in-foreground",
    "--conf-file=/dev/null",
    "--port=0",
    "--user=root",
    "--group=root",
  ];
  const link = ["--interface=s0", "--bind-interfaces", "--no-ping", "--log-dhcp", "--log-facility=-"];
  return [...plain, ...link, `--dhcp-leasefile=${leases}`, `--pid-file=${pid}`];
}

const ADDRESSES = [3, 6, 28, 33, 42, 54], TEXTS = [12, 15, 60, 66, 67];

/** It takes values of options that it knows in their own form only; of others, one byte is a number, and more are hex. */
function dnsmasqValue(code: number, hex: string): string {
  const bytes = Uint8Array.fromHex(hex);
  if (ADDRESSES.includes(code)) {
    return hex.match(/.{8}/g)!.map((one) => formatAddress(Uint8Array.fromHex(one))).join();
  }
  if (TEXTS.includes(code)) return new TextDecoder().decode(bytes);
  return bytes.length === 1 ? String(bytes[0]) : coloned(hex);
}

/** Knows clients by their MAC alone. */
export const udhcpd: Kind<Offer4> = {
  name: "udhcpd",
  prepare(offer, { config, leases, pid }, site) {
    const { range, subnet = SUBNET, leaseSeconds = LEASE_SECONDS, renewSeconds, rebindSeconds } = offer;
    const times = { 58: renewSeconds, 59: rebindSeconds };
    write(config, [
      `start ${range[0]}`,
      `end ${range[1]}`,
      "interface s0",
      "max_leases 100",
      `lease_file ${leases}`,
      `pidfile ${pid}`,
      "min_lease 1",
      "auto_time 1",
      `option subnet ${maskOf(subnet)}`,
      `option lease ${leaseSeconds}`,
      ...Object.entries(times).flatMap(([code, seconds]) =>
        seconds === undefined ? [] : [`option ${code} ${value.u32(seconds)}`]
      ),
      ...optionsOf(offer, site.address).map(([code, hex]) => `option ${code} ${hex}`),
    ]);
    touch(leases);
    // It asks by ARP whether somebody has the address before it offers it, by default for two seconds.
    return ["busybox", "udhcpd", "-f", "-a", "50", config];
  },
  isReady: (running) => running.hasBound(SERVER_PORT),
  readLeases: readUdhcpd,
  writeLeases: (running) => running.signal("SIGUSR1"),
};

export const iscDhcpd: Kind<Offer4> = {
  name: "dhcpd",
  prepare(offer, files, site) {
    const { range, subnet = SUBNET, leaseSeconds = LEASE_SECONDS, renewSeconds, rebindSeconds } = offer;
    const network = (prefix: string) => `subnet ${prefix.replace(/\/.*/, "")} netmask ${maskOf(prefix)}`;
    const options = optionsOf(offer, site.address);
    write(files.config, [
      ...(offer.authoritative === false ? [] : ["authoritative;"]),
      "db-time-format local;",
      ...["default", "max", "min"].map((which) => `${which}-lease-time ${leaseSeconds};`),
      ...(renewSeconds === undefined ? [] : [`option dhcp-renewal-time ${renewSeconds};`]),
      ...(rebindSeconds === undefined ? [] : [`option dhcp-rebinding-time ${rebindSeconds};`]),
      "ping-check false;",
      ...options.map(([code]) => `option raw-${code} code ${code} = string;`),
      // It must know the network of its own link.
      ...(subnet === SUBNET ? [] : [`${network(SUBNET)} {}`]),
      `${network(subnet)} {`,
      `  range ${range.join(" ")};`,
      ...options.map(([code, hex]) => `  option raw-${code} ${coloned(hex)};`),
      "}",
    ]);
    touch(files.leases);
    const plain = [ownCopy("dhcpd", files), "-4", "-f", "-d", "--no-pid"];
    return [...plain, "-cf", files.config, "-lf", files.leases, "s0"];
  },
  isReady: (running) => /^Server starting service/m.test(running.log()),
  readLeases: readIsc,
};

/** Kea has raw sockets, which need no address on the link and see what the kernel would drop; behind a relay with UDP ones. */
export const kea: Kind<Offer4> = {
  name: "kea-dhcp4",
  prepare(offer, files, site) {
    const { range, subnet = SUBNET, leaseSeconds = LEASE_SECONDS, renewSeconds, rebindSeconds } = offer;
    const optionData = optionsOf(offer, site.address).map(([code, data]) => ({
      code,
      data,
      "csv-format": false,
      "always-send": false,
    }));
    const { address, bits } = { address: subnet.replace(/\/.*/, ""), bits: parsePrefix(subnet)!.bits };
    const dhcp = {
      "interfaces-config": { interfaces: ["s0"], "dhcp-socket-type": subnet === SUBNET ? "raw" : "udp" },
      "valid-lifetime": leaseSeconds,
      "calculate-tee-times": false,
      ...(renewSeconds === undefined ? {} : { "renew-timer": renewSeconds }),
      ...(rebindSeconds === undefined ? {} : { "rebind-timer": rebindSeconds }),
      authoritative: offer.authoritative ?? true,
      subnet4: [{ subnet: `${address}/${bits}`, pools: [{ pool: range.join(" - ") }], "option-data": optionData }],
    };
    writeKeaConfig("Dhcp4", dhcp, files);
    return [ownCopy("kea-dhcp4", files), "-c", files.config];
  },
  env: keaEnvironment,
  isReady: (running) => running.log().includes("DHCP4_STARTED"),
  readLeases: readKea,
};

export function writeKeaConfig(name: "Dhcp4" | "Dhcp6", dhcp: object, { config, leases }: Files): void {
  const whole = {
    ...dhcp,
    "lease-database": { type: "memfile", persist: true, name: leases, "lfc-interval": 0 },
    loggers: [{ name: `kea-${name.toLowerCase()}`, output_options: [{ output: "stdout" }], severity: "INFO" }],
  };
  writeFileSync(config, JSON.stringify({ [name]: whole }));
}

export function keaEnvironment({ folder }: Files): Record<string, string> {
  return { KEA_PIDFILE_DIR: folder, KEA_LOCKFILE_DIR: "none", KEA_DHCP_DATA_DIR: folder };
}

export const SERVERS4 = [dnsmasq, udhcpd, iscDhcpd, kea];

/** Starts a server; answers when it serves. */
export async function serve4(kind: Kind<Offer4>, site: Site, offer: Offer4 = OFFER4): Promise<Server<Offer4>> {
  return await Server.open(kind, site, offer);
}
