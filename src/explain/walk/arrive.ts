/** A packet that is for the namespace itself: whether a program takes it. */
import type { ListeningSocket } from "../../ffi/netlink/diag/listening.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { sysctlName } from "../../ffi/sysctl.ts";
import { contains, formatAddress, isSameBytes, type Prefix } from "../../net/address.ts";
import { textOf } from "../../net/netfilter/known-bytes.ts";
import { ECHOES, nameWithPorts } from "../../net/ip-protocol.ts";
import { globalAddresses, type World } from "../facts.ts";
import { repairOf } from "../remedy.ts";
import {
  arrives,
  destinationOf,
  endsOf,
  isSameEnds,
  type Move,
  portIn,
  stopped,
  type Traveller,
} from "./traveller.ts";

export function arrive(world: World, traveller: Traveller, input: Link): Move[] {
  return traveller.direction === "answer" ? home(traveller) : atPort(world, traveller, input);
}

/** The sender takes an answer only from whom it has asked. */
function home(traveller: Traveller): Move[] {
  const { netns, packet, tracked } = traveller, asked = tracked[0]!;
  if (netns !== asked.netns) {
    const text = `the answer ends in ${netns.label}: ${formatAddress(destinationOf(traveller))} is an address of it`;
    return stopped(traveller, { code: "answer-elsewhere", what: "answer", text });
  }
  if (!isSameEnds(asked.before, endsOf(packet), "reversed")) {
    const text = `the answer comes to ${netns.label} from ${
      formatAddress(endsOf(packet).source.value)
    }, which it has not asked`;
    return stopped(traveller, { code: "answer-untranslated", what: "answer", text });
  }
  return arrives(traveller, "answer", `the answer arrives in ${netns.label}`);
}

function atPort(world: World, traveller: Traveller, input: Link): Move[] {
  const { netns, packet: { family, protocol } } = traveller, destination = destinationOf(traveller);
  const port = portIn(endsOf(traveller.packet).destinationPort),
    where = `${netns.label}, ${formatAddress(destination)}`;
  if (protocol in ECHOES) {
    const key = family === 4 ? "net/ipv4/icmp_echo_ignore_all" : "net/ipv6/icmp/echo_ignore_all";
    if (netns.sysctl(key) === "1") {
      const text = `${sysctlName(key)} is 1: ${netns.label} answers no echo`;
      return stopped(traveller, { code: "echo-ignored", what: "echo", text });
    }
  }
  const kind = nameWithPorts(protocol);
  if (kind === undefined || port === undefined) {
    return arrives(traveller, "arrives", `in ${where}`);
  }
  const name = `${kind}/${port}`;
  const sockets = [...netns.listening(family, protocol), ...family === 4 ? dualOf(netns.listening(6, protocol)) : []]
    .filter((socket) => socket.port === port && (socket.link === 0 || socket.link === input.index));
  const isHeard = sockets.some(({ address }) => isAny(address) || isSameBytes(address, destination));
  const published = asPublished(world, traveller, { port, kind, where, isHeard });
  if (published !== undefined) return published;
  if (isHeard) return arrives(traveller, "arrives", `in ${where}, where a program listens at ${name}`);
  const others = sockets.map(({ address }) => formatAddress(address));
  const onLoopback = sockets.length > 0 && others.every((each) => each.startsWith("127.") || each === "::1");
  if (onLoopback) {
    const text = `in ${netns.label} ${name} is listened at on ${others.join(" and ")} only`;
    const advice = "have the program listen at 0.0.0.0 or ::";
    return stopped(traveller, { code: "listens-on-loopback", what: name, text, mend: [{ advice }] });
  }
  const elsewhere = others.length === 0 ? "" : `, only on ${others.join(" and ")}`;
  const text = `nothing listens at ${name} of ${where}${elsewhere}`;
  return stopped(traveller, { code: "nobody-listens", what: name, text });
}

interface AskedPort {
  port: number;
  kind: string;
  where: string;
  isHeard: boolean;
}

/** Undefined where no container publishes the port, or a program of the host has it. */
function asPublished(
  world: World,
  traveller: Traveller,
  { port, kind, where, isHeard }: AskedPort,
): Move[] | undefined {
  const { netns } = traveller, destination = destinationOf(traveller), asked = formatAddress(destination);
  const isAsAsked = traveller.tracked.every((each) =>
    each.netns !== netns || textOf(each.before.destination) === textOf(endsOf(traveller.packet).destination)
  );
  const publisher = netns === world.host && isAsAsked ? world.publisherOf(port, kind, asked) : undefined;
  if (publisher === undefined) return undefined;
  const { netns: { label }, at = asked } = publisher, name = `${kind}/${port}`;
  const hasFamily = globalAddresses(publisher.netns, destination.length === 4 ? 4 : 6).length > 0;
  // By ::1 nobody reaches a published port: Linux lets no such packet leave the host.
  if (asked !== "::1" && at === asked && (hasFamily || !isHeard)) {
    // podman has its ports on the host listened at, so that nobody else takes them, and answers nothing there.
    const heard = isHeard ? "; a program of the host listens there instead" : "";
    const text = `no rule leads ${name} of ${where} to ${label}, which publishes it${heard}`;
    return stopped(traveller, { code: "no-mapping", what: name, text, mend: repairOf(publisher.netns) });
  }
  if (isHeard) return undefined;
  const only = publisher.at === undefined ? "" : ` at ${publisher.at}`;
  const text = `${label} publishes ${name}${only}, and not at ${asked}`;
  return stopped(traveller, { code: "published-elsewhere", what: name, text });
}

const MAPPED: Prefix = { bytes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0), bits: 96 };

/** Sockets of IPv6 for every address take packets of IPv4, too. */
function dualOf(sockets: readonly ListeningSocket[]): ListeningSocket[] {
  return sockets.flatMap((socket) => {
    if (isAny(socket.address)) return socket.isV6Only ? [] : [socket];
    return contains(MAPPED, socket.address) ? [{ ...socket, address: socket.address.slice(12) }] : [];
  });
}

function isAny(address: Uint8Array): boolean {
  return address.every((byte) => byte === 0);
}
