/**
 * A process that answers DHCPv6 clients on the link `s0` as its argument says: forged messages, and the right one.
 *
 *     bun forger6.ts '{"ADVERTISE":["wrong xid","right"],"REPLY":["right"]}'
 */
import { createSocket } from "node:dgram";
import {
  ADVERTISE,
  all,
  decode,
  decodeIa,
  encode,
  encodeIa,
  encodeIaAddress,
  first,
  type Message6,
  option,
  type Options6,
  REPLY,
  SOLICIT,
} from "../../../src/services/dhcp/v6/message/message.ts";
import { parseAddress } from "../../../src/net/address.ts";
import type { Answers, Forgery } from "./forged6.ts";

const SERVER_PORT = 547, RIGHT = "fd00:77::100", STRANGE = "fd00:77::bad";
const OURS = Uint8Array.fromHex("00030001020000007701"), OTHER = Uint8Array.fromHex("00030001020000006666");

interface Parts {
  xid: number;
  client: Uint8Array | undefined;
  server: Uint8Array | undefined;
  iaid: Uint8Array;
  address: string;
  preferred: number;
  valid: number;
}

const changes: Record<Forgery, (parts: Parts) => Partial<Parts>> = {
  right: () => ({ address: RIGHT }),
  "wrong xid": ({ xid }) => ({ xid: xid ^ 1 }),
  "wrong client": () => ({ client: OTHER }),
  "no client": () => ({ client: undefined }),
  "no server": () => ({ server: undefined }),
  "other server": () => ({ server: OTHER }),
  "other association": ({ iaid }) => ({ iaid: iaid.map((byte) => byte ^ 1) }),
  "link-local": () => ({ address: "fe80::bad" }),
  multicast: () => ({ address: "ff02::bad" }),
  loopback: () => ({ address: "::1" }),
  unspecified: () => ({ address: "::" }),
  "preferred for longer than valid": () => ({ preferred: 5000 }),
  withdrawn: () => ({ address: RIGHT, preferred: 0, valid: 0 }),
};

function answer(asked: Message6, type: number, forgery: Forgery): Uint8Array {
  const { iaid } = decodeIa(all(asked.options, option.ia)[0]!)!;
  const client = first(asked.options, option.clientId);
  const usual: Parts = { xid: asked.xid, client, server: OURS, iaid, address: STRANGE, preferred: 600, valid: 1000 };
  const parts = { ...usual, ...changes[forgery](usual) }, { server, preferred, valid } = parts;
  const address = encodeIaAddress({ address: parseAddress(parts.address)!, preferred, valid, options: [] });
  const ia = encodeIa({ iaid: parts.iaid, renew: 300, rebind: 400, options: [[option.iaAddress, address]] });
  const options: Options6 = [
    ...(parts.client === undefined ? [] : [[option.clientId, parts.client] as const]),
    ...(server === undefined ? [] : [[option.server, server] as const]),
    [option.ia, ia],
  ];
  return encode({ type, xid: parts.xid, options });
}

const answers: Answers = JSON.parse(process.argv[2]!);
const socket = createSocket({ type: "udp6", reuseAddr: true });
socket.on("message", (bytes, from) => {
  const asked = decode(new Uint8Array(bytes));
  if (asked === undefined || all(asked.options, option.ia).length === 0) return;
  const type = asked.type === SOLICIT ? ADVERTISE : REPLY;
  const wanted = type === ADVERTISE ? answers.ADVERTISE : answers.REPLY;
  const to = from.address.includes("%") ? from.address : `${from.address}%s0`;
  for (const forgery of wanted) socket.send(answer(asked, type, forgery), from.port, to);
});
socket.bind(SERVER_PORT, "::", () => {
  socket.addMembership("ff02::1:2", "::%s0");
  console.log("answers");
});
