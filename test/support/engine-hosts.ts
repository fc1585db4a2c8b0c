/** Hosts without a kernel: containers whose links are data, and what is opened of them. */
import type { Container } from "../../src/contract/host.ts";
import type { HostEnd } from "../../src/contract/resource.ts";
import * as own from "../../src/engine/open-host.ts";
import type { Opened, OpenHost, OpenOptions } from "../../src/engine/open-host.ts";
import { ENODEV, ENOENT, SyscallError } from "../../src/ffi/errno.ts";
import { NetlinkError, type NetlinkRequest, type NetlinkSocket } from "../../src/ffi/netlink/socket.ts";
import { RTM_NEWLINK } from "../../src/ffi/netlink/uapi/rtnetlink.ts";
import { type NetlinkMessage, Writer } from "../../src/ffi/netlink/wire.ts";
import { linkBody } from "./fake-host.ts";
import { replacedExports } from "./replaced-exports.ts";

export const NETNS = "/run/netns/x";
/** What leads to the namespace of this process. */
export const OWN_NETNS = "/proc/self/ns/net";
/** The kernel is asked for longer names by netlink alone, which is what a host here answers. */
export const LONG_NAME = "an-interface-with-a-long-name";

/** By the paths that lead to their namespaces. */
export const containers: Record<string, Container> = {};
/** What was opened, released and closed. */
export const opens: string[] = [];

export const replacedHosts = replacedExports(require.resolve("../../src/engine/open-host.ts"), own, {
  openHost(netnsPath: string, { mayBeGone, allowOwn }: OpenOptions = {}): OpenHost {
    const container = containers[netnsPath];
    if (netnsPath === OWN_NETNS && !allowOwn) throw new own.SameNetnsError();
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
});

/** A container with these links, by name and MAC address, whose namespace has the cookie. */
export function containerWith(
  links: Record<string, string>,
  { cookie, netnsPath = NETNS }: { cookie?: string; netnsPath?: string } = {},
): Container {
  const work = <Value>(inside: () => Value) => inside();
  return { netnsPath, netnsFd: -1, cookie, route: routeTo(links), inside: work, alone: work };
}

/** A link of the host. Without `farMac` the namespace of its other end has ended. */
export interface Pair extends Pick<HostEnd, "name" | "mac"> {
  farMac?: string;
  kind?: string;
}

/** What each look at the links of the host finds. */
export const onTheHost = { pairs: (): readonly Pair[] => [] };

/** Answers RTM_GETLINK. */
function routeTo(links: Record<string, string>): NetlinkSocket {
  const FIRST = 10;
  const reply = (onReply: (message: NetlinkMessage) => void, payload: Uint8Array) =>
    onReply({ type: RTM_NEWLINK, flags: 0, sequence: 0, payload });
  return {
    fd: -1,
    request({ what }: NetlinkRequest, onReply: (message: NetlinkMessage) => void) {
      const [, name, elsewhere] = /^RTM_GETLINK (\S*)(.*)$/.exec(what)!;
      const mac = elsewhere === "" ? links[name!] : onTheHost.pairs()[Number(name) - FIRST]?.farMac;
      if (mac === undefined) throw new NetlinkError(what, ENODEV);
      reply(onReply, linkMessage(name!, mac));
    },
    dump(_: NetlinkRequest, onReply: (message: NetlinkMessage) => void) {
      for (const [index, pair] of onTheHost.pairs().entries()) {
        reply(onReply, linkMessage(pair.name, pair.mac, { kind: pair.kind ?? "veth", link: FIRST + index }));
      }
    },
  } as Partial<NetlinkSocket> as NetlinkSocket;
}

function linkMessage(name: string, mac: string, pair?: { kind: string; link: number }): Uint8Array {
  const writer = new Writer();
  linkBody({ index: 7, name, mac, ...pair && { ...pair, linkNetnsId: 0 } })(writer);
  return writer.bytes.slice(0, writer.length);
}

export function hostWith(container: Container | undefined): Opened {
  const shared = { useShared() {}, isAloneWithShared: () => true };
  return { ...shared, container, cookie: "host", route: routeTo({}), netfilter: routeTo({}) };
}
