/** Namespaces whose kernel answers questions about links, addresses, rules and routes from lists, and changes nothing. */
import { ENODEV } from "../../src/ffi/errno.ts";
import type { Container, Host } from "../../src/contract/host.ts";
import { attrTable, binary, nest, text, u32 } from "../../src/ffi/netlink/attrs.ts";
import * as ifLink from "../../src/ffi/netlink/uapi/if-link.ts";
import { linkHeader } from "../../src/ffi/netlink/route/link-kinds.ts";
import { RTM_GETADDR, RTM_GETLINK, RTM_GETRULE } from "../../src/ffi/netlink/uapi/rtnetlink.ts";
import type { NetlinkMessage } from "../../src/ffi/netlink/wire.ts";
import { parseMac } from "../../src/net/mac.ts";
import { parsePrefix } from "../../src/net/address.ts";
import { answeringEach, type Body, bodyOf, socketTo } from "../ffi/netlink/fake-kernel.ts";

export interface FakeLink {
  index: number;
  name: string;
  kind?: string;
  /** The index of its other end or parent. */
  link?: number;
  /** The number of the namespace that its other end is in, when that is another one. */
  linkNetnsId?: number;
  master?: number;
  mac?: string;
  mtu?: number;
  /** The table of a vrf. */
  table?: number;
  addresses?: string[];
}

export interface FakeRule {
  family: 2 | 10;
  table: number;
  priority: number;
}

const linkAttrs = attrTable("IFLA", {
  name: text(ifLink.IFLA_IFNAME),
  address: binary(ifLink.IFLA_ADDRESS),
  mtu: u32(ifLink.IFLA_MTU),
  link: u32(ifLink.IFLA_LINK),
  linkNetnsId: u32(ifLink.IFLA_LINK_NETNSID),
  master: u32(ifLink.IFLA_MASTER),
  info: nest(
    ifLink.IFLA_LINKINFO,
    attrTable("IFLA_LINKINFO", {
      kind: text(ifLink.IFLA_INFO_KIND),
      data: nest(ifLink.IFLA_INFO_DATA, attrTable("vrf", { table: u32(ifLink.IFLA_VRF_TABLE) })),
    }),
  ),
});

export function linkBody({ index, name, kind, mac, mtu, link, linkNetnsId, master, table }: FakeLink): Body {
  const data = table === undefined ? undefined : { table }, info = kind === undefined ? undefined : { kind, data };
  const address = mac === undefined ? undefined : parseMac(mac);
  return (writer) => {
    linkHeader.write(writer, { index });
    linkAttrs.encode(writer, { name, address, mtu, link, linkNetnsId, master, info });
  };
}

const u32Of = (number: number) => new Uint8Array(Uint32Array.of(number).buffer).toHex();

function addressBody(index: number, prefixText: string): Body {
  const { bytes, bits } = parsePrefix(prefixText)!, family = bytes.length === 4 ? "02" : "0a";
  const header = `${family}${bits.toString(16).padStart(2, "0")}0000${u32Of(index)}`;
  return bodyOf(header, { 1: bytes.toHex(), 2: bytes.toHex() });
}

function ruleBody({ family, table, priority }: FakeRule): Body {
  const header = `${family === 2 ? "02" : "0a"}00000000000001` + "00000000";
  return bodyOf(header, { 6: u32Of(priority), 15: u32Of(table) });
}

/** A socket to a namespace with these links and rules. */
export function fakeRoute(links: readonly FakeLink[], rules: readonly FakeRule[] = []) {
  return socketTo(answeringEach(undefined, (question) => {
    if (question.type === RTM_GETLINK) {
      const found = asked(links, question);
      return found.length > 0 ? found.map(linkBody) : ENODEV;
    }
    if (question.type === RTM_GETADDR) {
      return links.flatMap(({ index, addresses = [] }) => addresses.map((one) => addressBody(index, one)));
    }
    return question.type === RTM_GETRULE ? rules.map(ruleBody) : [];
  }));
}

/** All in a dump, else the one that is meant. */
function asked(links: readonly FakeLink[], { flags, payload }: NetlinkMessage): FakeLink[] {
  if ((flags & 0x300) !== 0) return [...links];
  const { index } = linkHeader.read(payload), { name } = linkAttrs.decode(payload.subarray(linkHeader.bytes));
  return links.filter((link) => index === 0 ? link.name === name : link.index === index);
}

export function fakeHost(links: readonly FakeLink[], inside?: readonly FakeLink[], rules: readonly FakeRule[] = []) {
  const alone = <T>(work: () => T): T => work();
  const container = inside && { route: fakeRoute(inside, rules), alone, inside: alone } as unknown as Container;
  return { route: fakeRoute(links), container } as unknown as Host;
}
