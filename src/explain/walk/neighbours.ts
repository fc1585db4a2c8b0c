/** Whether a link can send, and who is next behind it. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { IFF_NOARP } from "../../ffi/netlink/uapi/if-link.ts";
import { formatAddress } from "../../net/address.ts";
import { type LinkIn, pairedHere, type World } from "../facts.ts";
import { linesIn, repairOf } from "../remedy.ts";
import {
  type Cause,
  destinationOf,
  entering,
  type Move,
  noted,
  sourceOf,
  stopped,
  type Traveller,
} from "./traveller.ts";
import { portWithMac, pvidOf } from "./vlans.ts";
import { shell } from "../../process/shell-word.ts";

/** Undefined when it can send. */
export function notUp(traveller: Traveller, link: Link): Move[] | undefined {
  const { netns } = traveller, where = netns.container === undefined ? "" : ` of ${netns.label}`;
  if (link.up && (link.hasCarrier || link.kind === "bridge")) return undefined;
  const what = link.name,
    { container } = netns,
    isMade = container?.attached.some(({ ifName }) => ifName === link.name) === true;
  const mend = isMade ? repairOf(netns) : [];
  if (!link.up) {
    const plain = [linesIn(netns, [shell`ip link set ${link.name} up`])];
    const text = `${link.name}${where} is down`;
    return stopped(traveller, { code: "link-down", what, text, mend: isMade ? mend : plain });
  }
  const other = link.kind === "veth" ? "the other end of the pair is down" : "nothing is plugged in";
  const text = `${link.name}${where} has no carrier: ${other}`, end = pairedHere(netns, link);
  const setUp = end === undefined || container !== undefined
    ? mend
    : [linesIn(netns, [shell`ip link set ${end.name} up`])];
  return stopped(traveller, { code: "no-carrier", what, text, mend: setUp });
}

export function toHolder(
  world: World,
  traveller: Traveller,
  link: Link,
  { netns, link: own }: LinkIn,
  nextHop: Uint8Array,
): Move[] {
  const wrong = otherMac(world, traveller, link, nextHop, [own.mac], netns.label);
  if (wrong !== undefined) return wrong;
  return [{ to: "receive", traveller: entering(remembering(traveller, link, nextHop), netns), link: own }];
}

/** The kernel has asked in vain so far, or is asking. */
export function isUnanswered({ netns }: Traveller, link: Link, nextHop: Uint8Array): boolean {
  const entry = netns.neighbour(link, nextHop);
  return entry !== undefined && entry.mac === undefined && (link.flags & IFF_NOARP) === 0;
}

function unansweredCause({ netns }: Traveller, link: Link, nextHop: Uint8Array): Cause {
  const text = `${formatAddress(nextHop)} behind ${link.name} has not answered so far`;
  return { code: "nobody-answers", netns, what: link.name, text };
}

/** Rules may drop the question, which is not walked. */
export function remembering(traveller: Traveller, link: Link, nextHop: Uint8Array): Traveller {
  if (traveller.silent !== undefined || !isUnanswered(traveller, link, nextHop)) return traveller;
  const silent = unansweredCause(traveller, link, nextHop);
  return { ...noted(traveller, silent.what, silent.text, { state: "note" }), silent };
}

/** Undefined when no other MAC address is known. */
export function otherMac(
  world: World,
  traveller: Traveller,
  link: Link,
  nextHop: Uint8Array,
  right: readonly string[],
  whose: string,
): Move[] | undefined {
  const { netns } = traveller, entry = netns.neighbour(link, nextHop), address = formatAddress(nextHop);
  if (entry?.mac === undefined || right.includes(entry.mac)) return undefined;
  const port = link.kind === "bridge" ? portWithMac(traveller, link, entry.mac, pvidOf(traveller, link)) : undefined;
  const other = port && world.endOf(port);
  if (other !== undefined && other !== whose) {
    const text = `${address} is ${whose}'s, and ${other} has it, too: this host sends to ${other}`;
    const mend = [{ advice: `take the address from ${other}, then: ip neighbour del ${address} dev ${link.name}` }];
    return stopped(traveller, { code: "address-twice", what: link.name, text, mend });
  }
  if ((link.flags & IFF_NOARP) !== 0) {
    const text = `${link.name} of ${netns.label} asks nobody for MAC addresses: its ARP is off`;
    const mend = [linesIn(netns, [shell`ip link set ${link.name} arp on`])];
    return stopped(traveller, { code: "wrong-neighbour", what: link.name, text, mend });
  }
  return stopped(traveller, {
    code: "wrong-neighbour",
    what: link.name,
    text: `${netns.label} sends what is for ${address} to ${entry.mac}, which is not ${whose}'s`,
    mend: [linesIn(netns, [shell`ip neighbour del ${address} dev ${link.name}`], "makes it ask again")],
  });
}

export function nobodyAnswers(traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  if (isUnanswered(traveller, link, nextHop)) {
    return stopped(traveller, unansweredCause(traveller, link, nextHop), "unknown");
  }
  const text = `${formatAddress(nextHop)} behind ${link.name} is nobody's who is seen here`;
  return stopped(traveller, { code: "nobody-answers", what: link.name, text }, "unknown");
}

/** What a program of the kernel decides, nobody else can tell. Rates of the plugin bandwidth let everything pass. */
export function byProgram(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  const { netns } = traveller, isOurs = netns === world.host && world.endOf(link) !== undefined;
  const what = link.hasXdp
    ? "an XDP program"
    : netns.filtered().has(link.index) && !isOurs
    ? "filters of tc"
    : undefined;
  if (what === undefined) return undefined;
  const text = `${what} of ${link.name} may drop it, or send it elsewhere`;
  const mend = [{
    advice: `bpftool net; tc filter show dev ${link.name} ingress; tc filter show dev ${link.name} egress`,
  }];
  return stopped(traveller, { code: "kernel-program", what: link.name, text, mend }, "unknown");
}

/** An answer that leaves the host, although a container of it has asked, or somebody behind another link. */
export function answerAstray(traveller: Traveller, link: Link): Move[] | undefined {
  const { direction, fromOutside, netns, tracked } = traveller;
  if (direction === "going" || fromOutside?.index === link.index) return undefined;
  const to = formatAddress(destinationOf(traveller)), asker = tracked[0]?.netns.label;
  const text = fromOutside === undefined
    ? `the answer to ${to} of ${asker} leaves ${netns.label} by ${link.name}`
    : `the answer to ${to} leaves by ${link.name}; who asked is taken to be behind ${fromOutside.name}`;
  const mend = [{ advice: `look at 'ip rule' and 'ip route get ${to} from ${formatAddress(sourceOf(traveller))}'` }];
  const verdict = fromOutside === undefined ? "stops" : "unknown";
  return stopped(traveller, { code: "answer-elsewhere", what: "answer", text, mend }, verdict);
}
