/** What podman learns of an attachment: `podman inspect` shows it, and `network reload` asks for the same again. */
import type { Result } from "../../cni/result.ts";
import { newestResult, type VersionedResult } from "../../cni/result-versions.ts";
import { onHost } from "../../engine/on-host.ts";
import { linkMac } from "../../ffi/netlink/route/link.ts";
import { warn } from "../../process/warn.ts";
import { canonicalAddress } from "../../net/address.ts";
import { canonicalMac } from "../../net/mac.ts";
import type { AttachmentRequest } from "../../runtime/plugin-call.ts";
import type { NetInterface, StatusBlock } from "../../interop/podman-documents/status-block.ts";

type RequestedAddresses = { addresses: readonly string[]; mac: string | undefined };

/** Is valid whatever plugins returned: netavark loses an attachment whose status it cannot read. */
export function statusBlock(
  result: VersionedResult | undefined,
  { netnsPath, ifName }: AttachmentRequest,
  requested: RequestedAddresses,
): StatusBlock {
  const { interfaces = [], ips = [], dns = {} } = read(result);
  const found: Record<string, NetInterface> = Object.create(null);
  interfaces.forEach(({ name, mac, sandbox }, index) => {
    if (!sandbox || name === "") return;
    found[name] = { mac_address: macOf(mac, netnsPath, name), subnets: subnetsOf(ips, index) };
  });
  const elsewhere = subnetsOf(ips.filter(({ interface: index }) => interfaces[index ?? -1] === undefined));
  // Results before 0.3.0 name no interface.
  const own = found[ifName] ?? { mac_address: macOf(undefined, netnsPath, ifName), subnets: [] };
  if (Object.keys(found).length === 0 || elsewhere.length > 0) {
    found[ifName] = { ...own, subnets: [...own.subnets ?? [], ...elsewhere] };
  }
  warnOfOthers(Object.values(found), requested);
  const servers = (dns.nameservers ?? []).filter(isReadable),
    domains = dns.search ?? (dns.domain ? [dns.domain] : []);
  return {
    dns_search_domains: domains.length > 0 ? domains : null,
    dns_server_ips: servers.length > 0 ? servers : null,
    interfaces: found,
  };
}

/** A network without plugins has no result. */
function read(result: VersionedResult | undefined): Result {
  return result === undefined ? { cniVersion: "" } : newestResult(result);
}

function subnetsOf(ips: NonNullable<Result["ips"]>, index?: number) {
  return ips.filter((ip) => index === undefined || ip.interface === index)
    .map(({ address, gateway }) => ({ gateway: gateway || null, ipnet: address }));
}

function isReadable(server: string): boolean {
  if (canonicalAddress(server) !== undefined) return true;
  warn(`the name server "${server}" is left out: it is not an IP address`);
  return false;
}

/** Asks the kernel for what a plugin did not say. */
function macOf(said: string | undefined, netnsPath: string, name: string): string {
  const mac = canonicalMac(said ?? "");
  if (mac !== undefined) return mac;
  try {
    return onHost(({ container }) => linkMac(container!.route, name) ?? "", netnsPath);
  } catch {
    return "";
  }
}

/** This is no error: `network reload` asks for everything again, and another address is better than none. */
function warnOfOthers(interfaces: readonly NetInterface[], { addresses, mac }: RequestedAddresses): void {
  const got = interfaces.flatMap(({ subnets }) => subnets ?? []).map(({ ipnet }) => ipnet.split("/")[0]!);
  const missing = addresses.filter((address) => !got.includes(canonicalAddress(address) ?? address));
  if (missing.length > 0) warn(`the network did not give ${missing.join(", ")}, but ${got.join(", ") || "nothing"}`);
  const macs = interfaces.map(({ mac_address }) => mac_address);
  if (mac !== undefined && !macs.includes(mac)) {
    warn(`the network did not give the MAC address ${mac}, but ${macs.join(", ")}`);
  }
}
