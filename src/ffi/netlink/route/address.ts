/** Addresses: the verbs of `ip address` (rtnetlink(7), linux/if_addr.h). */
import { AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { formatPrefix, lastOf, type Prefix } from "../../../net/address.ts";
import { EADDRNOTAVAIL, EEXIST, EINTR } from "../../errno.ts";
import { attrTable, binary, custom, u32 } from "../attrs.ts";
import { isNetlinkError, listOf, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { type NetlinkMessage, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, type Writer } from "../wire.ts";
import * as rtnetlink from "../uapi/rtnetlink.ts";

/** In seconds; `Infinity`: for ever. When it is over, the kernel removes the address. */
interface Lifetime {
  preferred: number;
  valid: number;
}

const FOREVER = 0xffffffff;

const addressAttrs = attrTable("IFA", {
  local: binary(rtnetlink.IFA_LOCAL),
  address: binary(rtnetlink.IFA_ADDRESS),
  broadcast: binary(rtnetlink.IFA_BROADCAST),
  flags: u32(rtnetlink.IFA_FLAGS),
  lifetime: custom<Lifetime>(rtnetlink.IFA_CACHEINFO, { write: writeLifetime, read: readLifetime }),
});

/** struct ifa_cacheinfo: preferred u32, valid u32, created u32, updated u32. */
function writeLifetime(writer: Writer, { preferred, valid }: Lifetime): void {
  for (const seconds of [preferred, valid]) writer.u32(Math.min(Math.floor(seconds), FOREVER));
  writer.u32(0).u32(0);
}

function readLifetime(payload: Uint8Array): Lifetime {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const [preferred, valid] = [0, 4].map((at) => view.getUint32(at, true)).map((one) =>
    one === FOREVER ? Infinity : one
  );
  return { preferred: preferred!, valid: valid! };
}

/** struct ifaddrmsg: family u8, prefix length u8, flags u8, scope u8, index u32. */
const HEADER_BYTES = 8;

function writeHeader(writer: Writer, family: number, bits: number, flags: number, index: number): void {
  writer.u8(family).u8(bits).u8(flags & 0xff).u8(0).u32(index);
}

export function familyOf(address: Uint8Array): number {
  return address.length === 4 ? AF_INET : AF_INET6;
}

/** `ip address add`. Returns "present" when the link already has the address. */
export function addAddress(
  socket: NetlinkSocket,
  linkIndex: number,
  prefix: Prefix,
  options: { skipDad?: boolean } = {},
): "added" | "present" {
  const type = rtnetlink.RTM_NEWADDR, flags = NLM_F_CREATE | NLM_F_EXCL;
  const request = requestOn(linkIndex, prefix, { type, flags }, { broadcast: broadcastOf(prefix) }, options.skipDad);
  return tryRequest(socket, request, [EEXIST]) ? "added" : "present";
}

/** `ip address replace … valid_lft … preferred_lft …`. */
export function lendAddress(
  socket: NetlinkSocket,
  linkIndex: number,
  prefix: Prefix,
  lifetime: Lifetime,
  broadcast?: Uint8Array,
): void {
  const type = rtnetlink.RTM_NEWADDR, flags = NLM_F_CREATE | NLM_F_REPLACE;
  const values = { broadcast: broadcast ?? broadcastOf(prefix), lifetime };
  // The lender of the address has made sure that nobody else has it.
  socket.request(requestOn(linkIndex, prefix, { type, flags }, values, true));
}

/** `ip address del`. */
export function delAddress(socket: NetlinkSocket, linkIndex: number, prefix: Prefix): "deleted" | "absent" {
  const request = requestOn(linkIndex, prefix, { type: rtnetlink.RTM_DELADDR });
  return tryRequest(socket, request, [EADDRNOTAVAIL]) ? "deleted" : "absent";
}

function requestOn(
  linkIndex: number,
  prefix: Prefix,
  how: { type: number; flags?: number },
  values: { broadcast?: Uint8Array | undefined; lifetime?: Lifetime } = {},
  skipDad = false,
): NetlinkRequest {
  const { bytes, bits } = prefix, family = familyOf(bytes);
  return {
    ...how,
    what: `${how.type === rtnetlink.RTM_NEWADDR ? "RTM_NEWADDR" : "RTM_DELADDR"} ${formatPrefix(prefix)}`,
    table: addressAttrs,
    fixedBytes: HEADER_BYTES,
    body: (writer) => {
      writeHeader(writer, family, bits, skipDad && family === AF_INET6 ? rtnetlink.IFA_F_NODAD : 0, linkIndex);
      addressAttrs.encode(writer, { local: bytes, address: bytes, ...values });
    },
  };
}

/** Networks of one or two addresses have none (RFC 3021). */
function broadcastOf(prefix: Prefix): Uint8Array | undefined {
  return prefix.bytes.length === 4 && prefix.bits <= 30 ? lastOf(prefix) : undefined;
}

export interface LinkAddress extends Prefix {
  linkIndex: number;
  /** RT_SCOPE_… */
  scope: number;
  tentative: boolean;
  duplicate: boolean;
  lifetime: Lifetime;
}

/** `ip address show dev …`; 0 means every link. Kernels before 5.0 list every link anyway. */
export function listAddresses(socket: NetlinkSocket, linkIndex: number, family = 0): LinkAddress[] {
  return listOf(socket, dumpOf(linkIndex, family), (message, addresses) => {
    const address = decodeAddress(message, linkIndex);
    if (address !== undefined) addresses.push(address);
  });
}

/** The kernel's answer is a few datagrams. */
const MOST_LOOKED_AT = 1000;

class SeenEnough extends Error {}

/**
 * The link's first address that is meant, for a process that serves others meanwhile: root of a container can give its link
 * any number of addresses, and change them all the time. So this looks once, and at a limited number. Afterwards `socket` is
 * of no use, because the kernel may not have come to the end of its answer.
 */
export function firstAddress(
  socket: NetlinkSocket,
  linkIndex: number,
  family: number,
  isMeant: (address: LinkAddress) => boolean,
): LinkAddress | undefined {
  let found: LinkAddress | undefined, count = 0;
  try {
    socket.dump({ ...dumpOf(linkIndex, family), attempts: 1 }, (message) => {
      const address = decodeAddress(message, linkIndex);
      if (address !== undefined && isMeant(address)) found = address;
      if (found !== undefined || ++count === MOST_LOOKED_AT) throw new SeenEnough();
    });
  } catch (error) {
    if (!(error instanceof SeenEnough) && !isNetlinkError(error, EINTR)) throw error;
  }
  return found;
}

function dumpOf(linkIndex: number, family: number): NetlinkRequest {
  return {
    what: "RTM_GETADDR dump",
    type: rtnetlink.RTM_GETADDR,
    body: (writer) => writeHeader(writer, family, 0, 0, linkIndex),
  };
}

function decodeAddress({ type, payload }: NetlinkMessage, linkIndex: number): LinkAddress | undefined {
  if (type !== rtnetlink.RTM_NEWADDR) return undefined;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const values = addressAttrs.decode(payload.subarray(HEADER_BYTES));
  const bytes = values.local ?? values.address;
  const ofLink = view.getUint32(4, true);
  if (bytes === undefined || (linkIndex !== 0 && ofLink !== linkIndex)) return undefined;
  const flags = values.flags ?? view.getUint8(2);
  return {
    linkIndex: ofLink,
    bytes,
    bits: view.getUint8(1),
    scope: view.getUint8(3),
    tentative: (flags & rtnetlink.IFA_F_TENTATIVE) !== 0,
    duplicate: (flags & rtnetlink.IFA_F_DADFAILED) !== 0,
    lifetime: values.lifetime ?? { preferred: Infinity, valid: Infinity },
  };
}
