/** Hosts of a segment that have addresses of a pool, without this cluster's knowledge: asked once, before a block is given out. */
import { delay } from "../../cluster-stores/delay.ts";
import { readTextFile } from "../../ffi/files.ts";
import { has } from "../../ffi/socket/filter.ts";
import { ALL_CARDS, ETH_P_ARP, PacketSocket } from "../../ffi/socket/packet.ts";
import { formatAddress } from "../../net/address.ts";
import { parseMac } from "../../net/mac.ts";
import {
  ADVERTISEMENT,
  ARP_AT,
  ARP_REPLY,
  arpRequest,
  cardsOfSolicited,
  DISCOVERY_AT,
  ETH_P_IPV6,
  ICMP6,
  neighbourSolicitation,
} from "../../net/neighbour-packets.ts";

/** Who has an address answers in milliseconds; a bridge port that has just come up forwards after a while. */
const WAIT_MS = 1000, LOOK_MS = 20, BURST = 64;
/** The first of a block of IPv6, which has more than anybody could ask for. */
export const MOST_ASKED = 4096;
const NOBODY = new Uint8Array(4);

/** The addresses that somebody has. Throws when the link is not there, or is down. */
export async function foreignAmong(link: string, addresses: readonly Uint8Array[]): Promise<string[]> {
  const index = Number(fact(link, "ifindex")), mac = parseMac(fact(link, "address"));
  if (mac?.length !== 6) throw new Error(`${link} is no link of Ethernet`);
  const found = new Set<string>();
  const families = [arpFamily(mac), DISCOVERY].filter(({ length }) =>
    addresses.some((each) => each.length === length)
  );
  for (const family of families) {
    const own = addresses.filter((each) => each.length === family.length), socket = family.open(index);
    try {
      await ask(socket, family, own, found);
    } finally {
      socket.close();
    }
  }
  return addresses.map(formatAddress).filter((address) => found.has(address));
}

interface Family {
  length: number;
  open(index: number): PacketSocket;
  send(socket: PacketSocket, address: Uint8Array): void;
  addressIn(packet: Uint8Array): Uint8Array;
}

/** All answers; which of them are wanted, is looked at afterwards: a filter for each address would be long. */
function arpFamily(mac: Uint8Array): Family {
  return {
    length: 4,
    open: (index) =>
      PacketSocket.open(index, ETH_P_ARP, [
        { keeps: false, when: has(ARP_AT.senderMac, mac) },
        { keeps: true, when: has(ARP_AT.operation, [0, ARP_REPLY]) },
      ]),
    send: (socket, address) => socket.send(ALL_CARDS, arpRequest(mac, NOBODY, address)),
    addressIn: (packet) => packet.slice(ARP_AT.sender, ARP_AT.sender + 4),
  };
}

const DISCOVERY: Family = {
  length: 16,
  open: (index) =>
    PacketSocket.open(index, ETH_P_IPV6, [
      { keeps: true, when: [...has(DISCOVERY_AT.protocol, [ICMP6]), ...has(DISCOVERY_AT.type, [ADVERTISEMENT])] },
    ]),
  send: (socket, address) => socket.send(cardsOfSolicited(address), neighbourSolicitation(address)),
  addressIn: (packet) => packet.slice(DISCOVERY_AT.target, DISCOVERY_AT.target + 16),
};

async function ask(
  socket: PacketSocket,
  family: Family,
  addresses: readonly Uint8Array[],
  found: Set<string>,
): Promise<void> {
  const collect = () => {
    for (let packet = socket.receive(); packet !== undefined; packet = socket.receive()) {
      found.add(formatAddress(family.addressIn(packet.bytes)));
    }
  };
  for (const [at, address] of addresses.entries()) {
    family.send(socket, address);
    if (at % BURST === BURST - 1) await delay(1);
    collect();
  }
  for (let waited = 0; waited < WAIT_MS; waited += LOOK_MS) {
    await delay(LOOK_MS);
    collect();
  }
}

function fact(link: string, name: string): string {
  const text = readTextFile(`/sys/class/net/${link}/${name}`);
  if (text === undefined) throw new Error(`there is no link ${link} on this host`);
  return text.trim();
}
