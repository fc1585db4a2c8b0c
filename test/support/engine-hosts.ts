/** Hosts without a kernel: containers whose links are data, and what is opened of them. */
import { mock } from "bun:test";
import type { Container } from "../../src/contract/host.ts";
import * as own from "../../src/engine/open-host.ts";
import type { Opened, OpenHost, OpenOptions } from "../../src/engine/open-host.ts";
import { ENODEV, ENOENT, SyscallError } from "../../src/ffi/errno.ts";
import { NetlinkError, type NetlinkRequest, type NetlinkSocket } from "../../src/ffi/netlink/socket.ts";
import { RTM_NEWLINK } from "../../src/ffi/netlink/uapi/rtnetlink.ts";
import { type NetlinkMessage, Writer } from "../../src/ffi/netlink/wire.ts";

export const NETNS = "/run/netns/x";
/** What leads to the namespace of this process. */
export const OWN_NETNS = "/proc/self/ns/net";
/** The kernel is asked for longer names by netlink alone, which is what a host here answers. */
export const LONG_NAME = "an-interface-with-a-long-name";

/** By the paths that lead to their namespaces. */
export const containers: Record<string, Container> = {};
/** What was opened, released and closed. */
export const opens: string[] = [];

const ownHost = { ...own };
mock.module("../../src/engine/open-host.ts", () => ({
  ...ownHost,
  openHost(netnsPath: string, { mayBeGone, allowOwn }: OpenOptions = {}): OpenHost {
    const container = containers[netnsPath];
    if (netnsPath === OWN_NETNS && !allowOwn) throw new ownHost.SameNetnsError();
    if (netnsPath !== "" && container === undefined && !mayBeGone) throw new SyscallError("open", ENOENT, netnsPath);
    opens.push(`open ${netnsPath}`);
    const log = (what: string) => () => void opens.push(`${what} ${netnsPath}`);
    return {
      ...hostWith(container),
      waitUntilAlone: log("wait until alone"),
      release: log("release"),
      close: log("close"),
    };
  },
}));

/** A container with these links, by name and MAC address, whose namespace has the cookie. */
export function containerWith(
  links: Record<string, string>,
  { cookie, netnsPath = NETNS }: { cookie?: string; netnsPath?: string } = {},
): Container {
  const work = <Value>(inside: () => Value) => inside();
  return { netnsPath, netnsFd: -1, cookie, route: routeTo(links), inside: work, alone: work };
}

/** Answers RTM_GETLINK for one link, and nothing else. */
function routeTo(links: Record<string, string>): NetlinkSocket {
  return {
    fd: -1,
    request({ what }: NetlinkRequest, onReply: (message: NetlinkMessage) => void) {
      const [, name] = /^RTM_GETLINK (.*)$/.exec(what)!, mac = links[name!];
      if (mac === undefined) throw new NetlinkError(what, ENODEV);
      onReply({ type: RTM_NEWLINK, flags: 0, sequence: 0, payload: linkMessage(name!, mac) });
    },
    dump() {},
  } as Partial<NetlinkSocket> as NetlinkSocket;
}

function linkMessage(name: string, mac: string): Uint8Array {
  const writer = new Writer(), IFLA_ADDRESS = 1, IFLA_IFNAME = 3;
  writer.u32(0).u32(7).u32(0).u32(0);
  writer.attribute(IFLA_ADDRESS, () => void writer.raw(Uint8Array.fromHex(mac.replaceAll(":", ""))));
  writer.attribute(IFLA_IFNAME, () => void writer.text(name));
  return writer.bytes.slice(0, writer.length);
}

/** On the host there are no links. */
export function hostWith(container: Container | undefined): Opened {
  const shared = { useShared() {}, isAloneWithShared: () => true };
  return { ...shared, container, cookie: "host", route: routeTo({}), netfilter: routeTo({}) };
}
