/** From netavark's words to the service's: what to ask servers for, and what netavark is told of a lease. */
import type { Owner } from "../../contract/owner.ts";
import type { LeaseText } from "../../dhcp/journal/lease-text.ts";
import { wantedOptions } from "../../dhcp/v4/lease/identity.ts";
import { option } from "../../dhcp/v4/message/message.ts";
import type { Wishes } from "../../dhcp/wishes.ts";
import { utf8 } from "../../ffi/libc.ts";
import { formatAddress } from "../../net/address.ts";
import { checkedMac } from "../wire/container-call.ts";
import { codes, GrpcError } from "./grpc.ts";
import type { Lease, NetworkConfig } from "./messages.ts";

/** Of leases in the journal: netavark does not say which network it is. */
const NETWORK = "netavark-dhcp-proxy";
const LONGEST_HOST_NAME = 255, OF_NO_HARDWARE = 0;
/** Lifetimes in netavark's messages have 32 bits. */
const FOREVER = 0xffff_ffff;

/** Throws GrpcError. */
export function checkConfig(config: NetworkConfig): void {
  const { version, containerMac, containerId, hostName } = config;
  const refuse = (text: string) => new GrpcError(codes.invalidArgument, text);
  if (version !== 0) throw refuse(version === 1 ? "ipv6 not yet supported" : "invalid protocol version");
  macOf(containerMac);
  if (/[\0/]/.test(containerId)) throw refuse(`container id ${JSON.stringify(containerId)}: contains / or NUL`);
  if (utf8(hostName).length > LONGEST_HOST_NAME || hostName.includes("\0")) {
    throw refuse(`host name ${JSON.stringify(hostName)}: longer than ${LONGEST_HOST_NAME} bytes, or with NUL`);
  }
}

export function macOf(text: string): string {
  try {
    return checkedMac(text);
  } catch (error) {
    throw new GrpcError(codes.invalidArgument, (error as Error).message);
  }
}

export function ownerOf({ containerId, containerMac, containerIface }: NetworkConfig): Owner {
  return { network: NETWORK, containerId: containerId || macOf(containerMac), ifName: containerIface };
}

export function wishesOf({ containerId, hostName, hostIface }: NetworkConfig): Wishes {
  // A container has the same address again, though it has another hardware address each time it starts.
  const id = containerId === "" ? undefined : new Uint8Array([OF_NO_HARDWARE, ...utf8(containerId)]);
  return {
    clientId: id?.toHex(),
    wanted: wantedOptions([]),
    provided: hostName === "" ? [] : [[option.hostName, utf8(hostName).toHex()]],
    broadcast: false,
    probe: "fast",
    servers: [],
    denied: [],
    onExpiry: "remove",
    ignored: [],
    priority: 0,
    v4: true,
    required: ["ipv4"],
    hostLink: hostIface,
    placesAddress: true,
  };
}

export function hostNameOf({ provided }: Wishes): string {
  const found = provided.find(([number]) => number === option.hostName);
  return found === undefined ? "" : new TextDecoder().decode(Uint8Array.fromHex(found[1]));
}

export function leaseOf(text: LeaseText, mac: string, hostName: string, domainName = ""): Lease {
  const [address = "", bits] = text.address.split("/");
  const mask = new Uint8Array(4).map((_, at) => 0xff << Math.min(8, Math.max(0, 8 * (at + 1) - Number(bits))));
  return {
    t1: text.renew ?? FOREVER,
    t2: text.rebind ?? FOREVER,
    lease_time: text.lease ?? FOREVER,
    mtu: text.mtu ?? 0,
    domain_name: domainName || text.domain || "",
    mac_address: mac,
    is_v6: false,
    siaddr: text.server,
    yiaddr: address,
    srv_id: text.server,
    subnet_mask: formatAddress(mask),
    broadcast_addr: text.broadcast ?? "",
    dns_servers: text.nameServers,
    gateways: text.routers,
    ntp_servers: text.timeServers,
    host_name: hostName,
  };
}

/** Of a container that has none. */
export const noLease: Lease = {
  t1: 0,
  t2: 0,
  lease_time: 0,
  mtu: 0,
  domain_name: "",
  mac_address: "",
  is_v6: false,
  siaddr: "",
  yiaddr: "",
  srv_id: "",
  subnet_mask: "",
  broadcast_addr: "",
  dns_servers: [],
  gateways: [],
  ntp_servers: [],
  host_name: "",
};

export function isSamePlace(some: Lease, other: Lease): boolean {
  const placeOf = ({ yiaddr, subnet_mask: mask, gateways }: Lease) => [yiaddr, mask, gateways[0]].join();
  return placeOf(some) === placeOf(other);
}
