/** A link as the kernel describes it in answers and notifications (rtnetlink(7)). */
import { formatMac } from "../../../net/mac.ts";
import { attrTable, binary, custom, nest, text, u32, u8 } from "../attrs.ts";
import * as ifLink from "../uapi/if-link.ts";
import { eachAttribute } from "../wire.ts";
import { bridgeData, bridgePortData, linkHeader } from "./link-kinds.ts";

/** How large a packet may be that the device cuts, or that is put together from what it has received. */
export interface PacketLimits {
  gsoMaxSegments?: number;
  gsoMaxSize?: number;
  groMaxSize?: number;
  gsoIpv4MaxSize?: number;
  groIpv4MaxSize?: number;
}

/** In the order in which the kernel needs them: setting the first sizes sets those of IPv4, too. */
export const packetLimits = {
  gsoMaxSize: u32(ifLink.IFLA_GSO_MAX_SIZE),
  gsoMaxSegments: u32(ifLink.IFLA_GSO_MAX_SEGS),
  groMaxSize: u32(ifLink.IFLA_GRO_MAX_SIZE),
  gsoIpv4MaxSize: u32(ifLink.IFLA_GSO_IPV4_MAX_SIZE),
  groIpv4MaxSize: u32(ifLink.IFLA_GRO_IPV4_MAX_SIZE),
};

export interface Link {
  index: number;
  name: string;
  flags: number;
  up: boolean;
  /** Whether something is plugged in: the other end of a veth is up, too. */
  hasCarrier: boolean;
  /** An XDP program sees each packet first. */
  hasXdp?: true;
  mac: string;
  /** The address that frames for all have. */
  broadcast?: string;
  /** Whether it is up with a carrier, or only once a program says so. */
  mode?: number;
  mtu: number;
  txQueueLength: number;
  master: number | undefined;
  /** The index of the other end of a veth, or of the parent of a macvlan. */
  link: number | undefined;
  /** Set when `link` is in another namespace. */
  linkNetnsId: number | undefined;
  operstate: number;
  promiscuity: number;
  alias: string | undefined;
  /** Each character is a byte: such a name need not be text. */
  altNames: readonly string[];
  /** The factory address of a device; virtual links have none. */
  permanentMac: string | undefined;
  /** The directory below /sys/bus of the hardware that the link is part of (Linux 5.14). */
  parent: string | undefined;
  /** It cannot be moved to another namespace; undefined before Linux 6.15, which does not say. */
  isImmovable: boolean | undefined;
  /** Undefined for links that are not virtual. */
  kind: string | undefined;
  /** The settings of its kind, for its LinkFormat to decode; a bridge's are decoded already. */
  kindData: Uint8Array | undefined;
  vlanFiltering: boolean;
  /** Whether a bridge asks the host's rules of a family about frames that it forwards (br_netfilter). */
  asksHostsRules?: { 4: boolean; 6: boolean };
  group?: number;
  limits?: PacketLimits;
  port: { hairpin: boolean; isolated: boolean; learning: boolean; state: number } | undefined;
}

export const altNameList = custom<readonly string[]>(ifLink.IFLA_PROP_LIST, {
  nested: true,
  write: (writer, names) => {
    for (const name of names) {
      const at = writer.open(ifLink.IFLA_ALT_IFNAME);
      writer.raw(Uint8Array.from(`${name}\0`, (character) => character.charCodeAt(0)));
      writer.close(at);
    }
  },
  read: (payload) => {
    const names: string[] = [];
    eachAttribute(payload, (type, bytes) => {
      if (type === ifLink.IFLA_ALT_IFNAME) names.push(String.fromCharCode(...bytes.subarray(0, bytes.indexOf(0))));
    });
    return names;
  },
});

const xdpAttrs = attrTable("IFLA_XDP", { attached: u8(ifLink.IFLA_XDP_ATTACHED) });

const linkAttrs = attrTable("IFLA", {
  ifName: text(ifLink.IFLA_IFNAME),
  address: binary(ifLink.IFLA_ADDRESS),
  broadcast: binary(ifLink.IFLA_BROADCAST),
  mode: u8(ifLink.IFLA_LINKMODE),
  mtu: u32(ifLink.IFLA_MTU),
  txQueueLength: u32(ifLink.IFLA_TXQLEN),
  link: u32(ifLink.IFLA_LINK),
  linkNetnsId: u32(ifLink.IFLA_LINK_NETNSID),
  master: u32(ifLink.IFLA_MASTER),
  operstate: u8(ifLink.IFLA_OPERSTATE),
  promiscuity: u32(ifLink.IFLA_PROMISCUITY),
  alias: text(ifLink.IFLA_IFALIAS),
  altNames: altNameList,
  permanentMac: binary(ifLink.IFLA_PERM_ADDRESS),
  parentName: text(ifLink.IFLA_PARENT_DEV_NAME),
  parentBus: text(ifLink.IFLA_PARENT_DEV_BUS_NAME),
  netnsImmutable: u8(ifLink.IFLA_NETNS_IMMUTABLE),
  group: u32(ifLink.IFLA_GROUP),
  xdp: nest(ifLink.IFLA_XDP, xdpAttrs),
  ...packetLimits,
  linkInfo: custom(ifLink.IFLA_LINKINFO, { write: () => {}, read: readLinkInfo }),
});

const linkInfoAttrs = attrTable("IFLA_LINKINFO", {
  kind: text(ifLink.IFLA_INFO_KIND),
  data: binary(ifLink.IFLA_INFO_DATA),
  slaveKind: text(ifLink.IFLA_INFO_SLAVE_KIND),
  slaveData: binary(ifLink.IFLA_INFO_SLAVE_DATA),
});

function readLinkInfo(
  payload: Uint8Array,
): Pick<Link, "kind" | "kindData" | "vlanFiltering" | "asksHostsRules" | "port"> {
  const { kind, data, slaveKind, slaveData } = linkInfoAttrs.decode(payload);
  const settings = kind === "bridge" && data !== undefined ? bridgeData.decode(data) : undefined;
  const port = slaveKind === "bridge" && slaveData ? bridgePortData.decode(slaveData) : undefined;
  return {
    kind,
    kindData: kind === "bridge" ? undefined : data,
    vlanFiltering: settings?.vlanFiltering === 1,
    ...(settings?.callsIptables || settings?.callsIp6tables) &&
      { asksHostsRules: { 4: settings.callsIptables === 1, 6: settings.callsIp6tables === 1 } },
    port: port && {
      hairpin: port.hairpin === 1,
      isolated: port.isolated === 1,
      learning: port.learning !== 0,
      state: port.state ?? 0,
    },
  };
}

export function decodeLink(payload: Uint8Array): Link {
  const header = linkHeader.read(payload);
  const attributes = linkAttrs.decode(payload.subarray(linkHeader.bytes));
  return {
    index: header.index,
    name: attributes.ifName ?? "",
    flags: header.flags,
    up: (header.flags & ifLink.IFF_UP) !== 0,
    hasCarrier: (header.flags & ifLink.IFF_LOWER_UP) !== 0,
    mac: attributes.address === undefined ? "" : formatMac(attributes.address),
    broadcast: attributes.broadcast && formatMac(attributes.broadcast),
    mode: attributes.mode,
    mtu: attributes.mtu ?? 0,
    txQueueLength: attributes.txQueueLength ?? 0,
    master: attributes.master,
    link: attributes.link,
    linkNetnsId: attributes.linkNetnsId,
    operstate: attributes.operstate ?? 0,
    promiscuity: attributes.promiscuity ?? 0,
    alias: attributes.alias,
    altNames: attributes.altNames ?? [],
    permanentMac: attributes.permanentMac && formatMac(attributes.permanentMac),
    parent: attributes.parentBus && `${attributes.parentBus}/devices/${attributes.parentName}`,
    isImmovable: attributes.netnsImmutable === undefined ? undefined : attributes.netnsImmutable === 1,
    kind: attributes.linkInfo?.kind,
    kindData: attributes.linkInfo?.kindData,
    vlanFiltering: attributes.linkInfo?.vlanFiltering ?? false,
    ...attributes.linkInfo?.asksHostsRules && { asksHostsRules: attributes.linkInfo.asksHostsRules },
    group: attributes.group,
    ...attributes.xdp?.attached && { hasXdp: true },
    limits: {
      gsoMaxSize: attributes.gsoMaxSize,
      gsoMaxSegments: attributes.gsoMaxSegments,
      groMaxSize: attributes.groMaxSize,
      gsoIpv4MaxSize: attributes.gsoIpv4MaxSize,
      groIpv4MaxSize: attributes.groIpv4MaxSize,
    },
    port: attributes.linkInfo?.port,
  };
}
