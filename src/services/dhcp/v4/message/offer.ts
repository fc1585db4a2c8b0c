/**
 * What a server offers: the options of its message, each checked before anything believes it (RFC 2131 section 4.3.1,
 * RFC 2132). Pure.
 */
import { compareAddresses, contains, lastOf, networkOf, type Prefix } from "../../../../net/address.ts";
import { type Message, option, type Options } from "./message.ts";
import { isDomainName, readSearchList } from "../../names.ts";
import { type OptionReader, optionReader, readAddressList } from "../../option-reader.ts";
import { type GivenRoute, readClasslessRoutes, readStaticRoutes } from "./routes.ts";

export interface Offered {
  address: Prefix;
  server: Uint8Array;
  /** The first is the gateway. */
  routers: Uint8Array[];
  /** The routes of option 121, or else of 33; undefined without either. */
  routes?: GivenRoute[];
  /** Option 121 replaces the routers' default route. */
  isClassless: boolean;
  nameServers: Uint8Array[];
  domain?: string;
  search: string[];
  timeServers: Uint8Array[];
  mtu?: number;
  broadcast?: Uint8Array;
  times: Times;
  /** Options that were ignored because they are malformed. */
  ignored: string[];
}

/** Seconds from the request; `Infinity` for a lease without end. */
export interface Times {
  lease: number;
  renew: number;
  rebind: number;
}

/** The text says what is wrong with the whole message. */
export class UnusableOffer extends Error {}

const DEFAULT_LEASE_S = 3600, FOREVER = 0xffffffff;
const MOST_ROUTERS = 4, MOST_SERVERS = 8, SMALLEST_MTU = 576, LARGEST_MTU = 65535;
const SHORTEST_PREFIX = 8;

/** Throws UnusableOffer when an address may not be used as the message says. */
export function readOffer({ yourAddress, options }: Pick<Message, "yourAddress" | "options">): Offered {
  const ignored: string[] = [], read = optionReader((number) => options.get(number), ignored);
  const server = readServer(options), address = readAddress(yourAddress!, options);
  const allRouters = addresses(read, option.routers, MOST_ROUTERS);
  for (const other of [server, ...allRouters]) {
    if (compareAddresses(other, address.bytes) === 0) {
      throw new UnusableOffer("the address is the server's or a router's");
    }
  }
  const classless = read(option.classlessRoutes, readClasslessRoutes);
  const allRoutes = classless ?? read(option.staticRoutes, readStaticRoutes);
  const isOnLink = reachableFrom(address, allRoutes ?? [], ignored);
  const routes = allRoutes?.filter(({ gateway }) => gateway === undefined || isOnLink(gateway));
  const routers = allRouters.filter(isOnLink);
  const domains = readDomains(read);
  return {
    address,
    server,
    routers,
    routes,
    isClassless: classless !== undefined,
    nameServers: addresses(read, option.nameServers, MOST_SERVERS).filter(isHost),
    domain: domains[0],
    search: read(option.searchList, readSearchList) ?? (domains.length > 1 ? domains : []),
    timeServers: addresses(read, option.timeServers, MOST_SERVERS).filter(isHost),
    mtu: read(option.mtu, readMtu),
    broadcast: read(option.broadcastAddress, (bytes) => readBroadcast(bytes, address)),
    times: readTimes(options),
    ignored,
  };
}

/** The kernel refuses a route through a router that neither the address nor an on-link route leads to. */
function reachableFrom(address: Prefix, routes: readonly GivenRoute[], ignored: string[]) {
  const links = [address, ...routes.filter(({ gateway }) => gateway === undefined).map((route) => route.destination)];
  return (router: Uint8Array): boolean => {
    const isReachable = isHost(router) && links.some((link) => contains(link, router)) &&
      compareAddresses(router, address.bytes) !== 0;
    if (!isReachable) ignored.push(`router ${router.join(".")} is not on the link`);
    return isReachable;
  };
}

function readServer(options: Options): Uint8Array {
  const server = options.get(option.server);
  if (server?.length !== 4 || !isHost(server)) {
    throw new UnusableOffer("the message does not say whose it is (option 54)");
  }
  return server;
}

/** Its prefix is as long as the mask says. Throws for what no host may have. */
function readAddress(bytes: Uint8Array, options: Options): Prefix {
  const mask = options.get(option.subnetMask);
  // The reference plugin's words.
  if (mask === undefined) throw new UnusableOffer("DHCP option Subnet Mask not found in DHCPACK");
  const bits = prefixLength(mask);
  if (bits === undefined || bits < SHORTEST_PREFIX) throw new UnusableOffer(`the subnet mask is ${mask.join(".")}`);
  const address = { bytes, bits };
  const isEdge = bits < 31 &&
    [networkOf(address), lastOf(address)].some((edge) => compareAddresses(edge, bytes) === 0);
  if (!isHost(bytes) || isEdge) throw new UnusableOffer(`${bytes.join(".")}/${bits} is no address of a host`);
  return address;
}

/** Neither this network, loopback, multicast, reserved nor broadcast. */
function isHost(bytes: Uint8Array): boolean {
  const first = bytes[0]!;
  return first !== 0 && first !== 127 && first < 224;
}

function prefixLength(mask: Uint8Array): number | undefined {
  if (mask.length !== 4) return undefined;
  const bits = mask.reduce((text, byte) => text + byte.toString(2).padStart(8, "0"), "");
  return /^1*0*$/.test(bits) ? bits.lastIndexOf("1") + 1 : undefined;
}

function readTimes(options: Options): Times {
  const given = uint32(options, option.leaseTime) ?? DEFAULT_LEASE_S;
  if (given === 0) throw new UnusableOffer("the lease time is 0 (option 51)");
  if (given === FOREVER) return { lease: Infinity, renew: Infinity, rebind: Infinity };
  const renew = uint32(options, option.renewalTime) ?? given * 0.5;
  const rebind = uint32(options, option.rebindingTime) ?? given * 0.875;
  if (renew > 0 && renew < rebind && rebind < given) return { lease: given, renew, rebind };
  return { lease: given, renew: given * 0.5, rebind: given * 0.875 };
}

function uint32(options: Options, number: number): number | undefined {
  const bytes = options.get(number);
  if (bytes === undefined || bytes.length !== 4) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
}

function readMtu(bytes: Uint8Array): number | undefined {
  if (bytes.length !== 2) return undefined;
  const mtu = (bytes[0]! << 8) | bytes[1]!;
  return mtu >= SMALLEST_MTU && mtu <= LARGEST_MTU ? mtu : undefined;
}

function readBroadcast(bytes: Uint8Array, address: Prefix): Uint8Array | undefined {
  return bytes.length === 4 && contains(address, bytes) ? bytes : undefined;
}

/** Some servers write several names into the one. */
function readDomains(read: OptionReader): string[] {
  const domains = read(option.domainName, (bytes) => {
    const names = String.fromCharCode(...bytes).replace(/\0+$/, "").split(" ").filter((name) => name !== "");
    return names.length > 0 && names.every(isDomainName) ? names : undefined;
  });
  return domains ?? [];
}

function addresses(read: OptionReader, number: number, most: number): Uint8Array[] {
  return read(number, (bytes) => readAddressList(bytes, 4))?.slice(0, most) ?? [];
}
