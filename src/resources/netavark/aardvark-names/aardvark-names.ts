/**
 * A container's names in one network, in the file of aardvark-dns. The first names of a host start it, and it ends with
 * the last.
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { AF_INET6 } from "../../../ffi/socket/socket.ts";
import { awaitChange } from "../../../ffi/netlink/events.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import { RTNLGRP_IPV6_IFADDR } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, isSameBytes, isV6, parseAddress } from "../../../net/address.ts";
import { addNames, hasNames, removeNames } from "./names.ts";
import { awaitAnswers, whyUnanswered } from "./service.ts";
import type { NamesSpec } from "./spec.ts";

const DUPLICATE_WAIT_MS = 5000;

export const aardvarkNamesKind: ResourceKind<NamesSpec> = {
  kind: "aardvark-names",
  apply(spec, { route }) {
    awaitGateways(spec, route);
    addNames(spec);
  },
  verify: (spec) => [
    ...hasNames(spec) ? [] : [`${textOf(spec)} are missing in ${spec.directory}`],
    ...whyUnanswered(spec),
  ],
  remove(spec, _host, isRestated) {
    // Otherwise the names of the ledger have just been removed, and aardvark-dns has reloaded.
    if (!isRestated || hasNames(spec)) removeNames(spec);
  },
  repair(spec, { route }) {
    awaitGateways(spec, route);
    if (!addNames(spec)) throw new Error(`there is no program ${spec.binary}`);
    awaitAnswers(spec);
  },
  describe: textOf,
  nameServers: ({ networks, port }) =>
    networks.flatMap(({ gateways }) => gateways.map((address) => ({ address, port }))),
};

export const aardvarkNames = resource(aardvarkNamesKind);

/** The kernel looks for duplicates of an address of IPv6 before aardvark-dns can listen at it: an unmanaged bridge's, and others'. */
function awaitGateways({ networks }: NamesSpec, route: NetlinkSocket): void {
  const gateways = networks.flatMap((network) => network.gateways).filter(isV6).map((each) => parseAddress(each)!);
  if (gateways.length === 0) return;
  const isSettled = () => {
    const own = listAddresses(route, 0, AF_INET6).filter(({ bytes }) =>
      gateways.some((one) => isSameBytes(one, bytes))
    );
    const taken = own.find(({ duplicate }) => duplicate);
    if (taken !== undefined) {
      throw new Error(`another machine has the gateway's address ${formatAddress(taken.bytes)}`);
    }
    return !own.some(({ tentative }) => tentative);
  };
  if (!isSettled()) awaitChange(RTNLGRP_IPV6_IFADDR, DUPLICATE_WAIT_MS, isSettled);
}

function textOf({ networks }: NamesSpec): string {
  return networks.map(({ name, names }) => `names ${names.join(", ")} in ${name}`).join("; ");
}
