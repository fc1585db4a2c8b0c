/** The netlink socket of a container without a kernel: it has addresses and routes, and tells in words what was asked of it. */
import { EADDRNOTAVAIL, EEXIST, ENETUNREACH, ESRCH } from "../../../src/ffi/errno.ts";
import { NetlinkError, type NetlinkRequest, type NetlinkSocket } from "../../../src/ffi/netlink/socket.ts";
import { linkHeader } from "../../../src/ffi/netlink/route/link-kinds.ts";
import { readRoute } from "../../../src/ffi/netlink/route/route.ts";
import { IFLA_MTU } from "../../../src/ffi/netlink/uapi/if-link.ts";
import * as rtnetlink from "../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { eachAttribute, type NetlinkMessage, Writer } from "../../../src/ffi/netlink/wire.ts";
import { formatAddress, formatPrefix, parsePrefix, type Prefix } from "../../../src/net/address.ts";

const ADDRESS_HEADER_BYTES = 8, LINK_INDEX_AT = 4;

export class SimulatedNetlink {
  /** Each with its flags. */
  readonly addresses = new Map<string, number>();
  /** Destination and gateway. */
  readonly routes = new Set<string>();
  failure: Error | undefined;
  /** A gateway that no address of the link reaches. */
  unreachable: string | undefined;

  constructor(private readonly index: number, private readonly tell: (what: string) => void) {}

  readonly socket: NetlinkSocket = {
    fd: -1,
    opened: "raw",
    closesSlowly: false,
    request: (request) => {
      if (this.failure !== undefined) throw this.failure;
      this.answer(request, bodyOf(request));
    },
    dump: (request, onReply) => this.list(bodyOf(request), onReply),
    transact: () => [],
    isQuiet: () => true,
    close: () => {},
  };

  private answer(request: NetlinkRequest, body: Uint8Array): void {
    switch (request.type) {
      case rtnetlink.RTM_NEWADDR:
        return this.lend(body);
      case rtnetlink.RTM_DELADDR: {
        const name = formatPrefix(this.prefixIn(body));
        this.tell(`no address ${name}`);
        if (!this.addresses.delete(name)) throw new NetlinkError(request.what, EADDRNOTAVAIL);
        return;
      }
      case rtnetlink.RTM_NEWROUTE:
      case rtnetlink.RTM_DELROUTE:
        return this.route(request, body);
      case rtnetlink.RTM_NEWLINK: {
        const { index, flags } = linkHeader.read(body), mtu = attributesOf(body, linkHeader.bytes).get(IFLA_MTU);
        const change = new DataView(body.buffer, body.byteOffset).getUint32(12, true); // struct ifinfomsg
        if (index !== this.index) throw new Error(`link ${index} is not there`);
        if (mtu !== undefined) this.tell(`MTU ${new DataView(mtu.slice().buffer).getUint32(0, true)}`);
        if (change !== 0) this.tell(flags === 0 ? "link down" : "link up");
      }
    }
  }

  private lend(body: Uint8Array): void {
    const prefix = formatPrefix(this.prefixIn(body)), attributes = attributesOf(body, ADDRESS_HEADER_BYTES);
    const times = new DataView(attributes.get(rtnetlink.IFA_CACHEINFO)!.slice().buffer);
    const [preferred, valid] = [0, 4].map((at) => times.getUint32(at, true)).map((one) =>
      one === 0xffffffff ? "ever" : `${one} s`
    );
    const broadcast = attributes.get(rtnetlink.IFA_BROADCAST);
    this.addresses.set(prefix, 0);
    this.tell([
      `address ${prefix} for ${valid}`,
      ...preferred === valid ? [] : [`preferred for ${preferred}`],
      ...broadcast === undefined ? [] : [`broadcast ${formatAddress(broadcast)}`],
    ].join(", "));
  }

  private route(request: NetlinkRequest, body: Uint8Array): void {
    const { dst, gateway, oif, priority, scope } = readRoute(body), isNew = request.type === rtnetlink.RTM_NEWROUTE;
    if (oif !== this.index) throw new Error(`link ${oif} is not there`);
    const name = `${formatPrefix(dst)}${gateway === undefined ? "" : ` via ${formatAddress(gateway)}`}`;
    const metric = priority === undefined ? "" : ` metric ${priority}`;
    this.tell(`${isNew ? "route" : "no route"} ${name}${metric}${gateway === undefined ? ` scope ${scope}` : ""}`);
    if (isNew && name.endsWith(` via ${this.unreachable}`)) throw new NetlinkError(request.what, ENETUNREACH);
    if (isNew === this.routes.has(name)) throw new NetlinkError(request.what, isNew ? EEXIST : ESRCH);
    if (isNew) this.routes.add(name);
    else this.routes.delete(name);
  }

  private prefixIn(body: Uint8Array): Prefix {
    const index = new DataView(body.buffer).getUint32(LINK_INDEX_AT, true);
    if (index !== this.index) throw new Error(`link ${index} is not there`);
    return { bytes: attributesOf(body, ADDRESS_HEADER_BYTES).get(rtnetlink.IFA_LOCAL)!, bits: body[1]! };
  }

  private list(body: Uint8Array, onReply: (message: NetlinkMessage) => void): void {
    for (const [text, flags] of this.addresses) {
      const { bytes, bits } = parsePrefix(text)!, family = bytes.length === 4 ? 2 : 10;
      if (body[0] !== 0 && body[0] !== family) continue;
      const writer = new Writer();
      writer.u8(family).u8(bits).u8(flags).u8(0).u32(this.index);
      writer.attribute(rtnetlink.IFA_LOCAL, () => void writer.raw(bytes));
      const payload = writer.bytes.slice(0, writer.length);
      onReply({ type: rtnetlink.RTM_NEWADDR, flags: 0, sequence: 0, payload });
    }
  }
}

function bodyOf({ body }: NetlinkRequest): Uint8Array {
  const writer = new Writer();
  body(writer);
  return writer.bytes.slice(0, writer.length);
}

function attributesOf(body: Uint8Array, from: number): Map<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  eachAttribute(body.subarray(from), (type, payload) => void found.set(type, payload.slice()));
  return found;
}
