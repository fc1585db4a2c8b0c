/** Completes and checks a subnet of a new network. */
import {
  compareAddresses,
  contains,
  formatAddress,
  networkOf,
  nextAddress,
  overlap,
  parseAddress,
  type Prefix,
} from "../../../net/address.ts";
import type { PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { prefixOf } from "../../../interop/podman-documents/network.ts";

export type Subnet = NonNullable<PodmanNetwork["subnets"]>[number];

/** Adds the first address as the gateway, when one is wanted and none is given. */
export function finishSubnet(
  asked: Subnet,
  { wantsGateway, taken }: { wantsGateway: boolean; taken: readonly string[] },
): Subnet {
  const prefix = prefixOf(asked.subnet);
  if (taken.some((other) => overlap(prefix, prefixOf(other)))) {
    throw new Error(`subnet ${asked.subnet} is already used on the host or by another config`);
  }
  if (asked.gateway !== undefined && !contains(prefix, parseAddress(asked.gateway)!)) {
    throw new Error(`gateway ${asked.gateway} not in subnet ${asked.subnet}`);
  }
  const gateway = asked.gateway ?? (wantsGateway ? firstAddress(asked.subnet, prefix) : undefined);
  refuseBadLeaseRange(asked.lease_range ?? {}, asked.subnet, prefix);
  return { ...asked, ...gateway !== undefined && { gateway } };
}

/** IPv4 reserves the first and the last address of a subnet; IPv6 does not. */
function firstAddress(subnet: string, prefix: Prefix): string {
  const longest = prefix.bytes.length === 4 ? 31 : 128;
  if (prefix.bits >= longest) {
    throw new Error(
      `could not create gateway for subnet ${subnet} because it has a ${longest} or greater subnet prefix`,
    );
  }
  return formatAddress(nextAddress(networkOf(prefix)));
}

function refuseBadLeaseRange(range: NonNullable<Subnet["lease_range"]>, subnet: string, prefix: Prefix): void {
  const [start, end] = (["start_ip", "end_ip"] as const).map((key) => {
    const text = range[key];
    if (text === undefined) return undefined;
    const address = parseAddress(text);
    if (address === undefined) throw new Error(`invalid ${key}: invalid IP address syntax: ${JSON.stringify(text)}`);
    if (!contains(prefix, address)) throw new Error(`lease range ${key} ${text} not in subnet ${subnet}`);
    return address;
  });
  if (start === undefined || end === undefined || compareAddresses(start, end) <= 0) return;
  throw new Error(`lease range start_ip ${range.start_ip} must be less than or equal to end_ip ${range.end_ip}`);
}
