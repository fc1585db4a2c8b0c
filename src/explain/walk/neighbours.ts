/** Whether a link can send, and who is next behind it. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import { formatAddress, isSameBytes } from "../../net/address.ts";
import type { LinkIn, NetnsFacts, World } from "../facts.ts";
import { repairOf } from "./routing.ts";
import { entering, type Move, stopped, type Traveller } from "./traveller.ts";
import { shell } from "../../process/shell-word.ts";

export function isAddressOf(netns: NetnsFacts, address: Uint8Array): boolean {
  return netns.addresses().some(({ bytes }) => isSameBytes(bytes, address));
}

/** Undefined when it can send. */
export function notUp(traveller: Traveller, link: Link): Move[] | undefined {
  const { netns } = traveller, where = netns.container === undefined ? "" : ` of ${netns.label}`;
  if (link.up && (link.hasCarrier || link.kind === "bridge")) return undefined;
  const what = link.name, mend = repairOf(netns);
  if (!link.up) {
    const plain = [{ run: shell`ip link set ${link.name} up` }];
    const text = `${link.name}${where} is down`;
    return stopped(traveller, { code: "link-down", what, text, mend: mend.length > 0 ? mend : plain });
  }
  const other = link.kind === "veth" ? "the other end of the pair is down" : "nothing is plugged in";
  return stopped(traveller, {
    code: "no-carrier",
    what,
    text: `${link.name}${where} has no carrier: ${other}`,
    mend,
  });
}

export function toHolder(
  traveller: Traveller,
  link: Link,
  { netns, link: own }: LinkIn,
  nextHop: Uint8Array,
): Move[] {
  const wrong = otherMac(traveller, link, nextHop, [own.mac], netns.label);
  if (wrong !== undefined) return wrong;
  return [{ to: "receive", traveller: entering(traveller, netns), link: own }];
}

/** Undefined when no other MAC address is known. */
export function otherMac(
  traveller: Traveller,
  link: Link,
  nextHop: Uint8Array,
  right: readonly string[],
  whose: string,
): Move[] | undefined {
  const { netns } = traveller, entry = netns.neighbour(link, nextHop), address = formatAddress(nextHop);
  if (entry?.mac === undefined || right.includes(entry.mac)) return undefined;
  const inside = netns.container === undefined ? "" : shell`nsenter --net=${netns.container.netnsPath} `;
  return stopped(traveller, {
    code: "wrong-neighbour",
    what: link.name,
    text: `${netns.label} sends what is for ${address} to ${entry.mac}, which is not ${whose}'s`,
    mend: [{ run: inside + shell`ip neighbour del ${address} dev ${link.name}`, because: "makes it ask again" }],
  });
}

export function nobodyAnswers(traveller: Traveller, link: Link, nextHop: Uint8Array): Move[] {
  const address = formatAddress(nextHop), { netns } = traveller, entry = netns.neighbour(link, nextHop);
  const so = entry !== undefined && entry.mac === undefined
    ? "has not answered so far"
    : "is nobody's who is seen here";
  return stopped(
    traveller,
    { code: "nobody-answers", what: link.name, text: `${address} behind ${link.name} ${so}` },
    "unknown",
  );
}

/** What a program of the kernel decides, nobody else can tell. Rates of the plugin bandwidth let everything pass. */
export function byProgram(world: World, traveller: Traveller, link: Link): Move[] | undefined {
  const { netns } = traveller, isOurs = netns === world.host && world.isContainersEnd(link);
  const what = link.hasXdp
    ? "an XDP program"
    : netns.filtered().has(link.index) && !isOurs
    ? "filters of tc"
    : undefined;
  if (what === undefined) return undefined;
  const text = `${what} of ${link.name} may drop it, or send it elsewhere`;
  const mend = [{ advice: `bpftool net; tc filter show dev ${link.name} ingress` }];
  return stopped(traveller, { code: "kernel-program", what: link.name, text, mend }, "unknown");
}
