/** DHCPv4 messages as a server reads and writes them. The program has a client's side only. */
import { decodeReply, encodeRequest, type Message } from "../../../src/services/dhcp/v4/message/message.ts";

const BOOTREQUEST = 1, BOOTREPLY = 2;

export function encodeReply(message: Message): Uint8Array<ArrayBuffer> {
  const bytes = encodeRequest(message);
  bytes[0] = BOOTREPLY;
  return bytes;
}

export function decodeRequest(bytes: Uint8Array): Message | undefined {
  if (bytes[0] !== BOOTREQUEST) return undefined;
  const reply = Uint8Array.from(bytes);
  reply[0] = BOOTREPLY;
  return decodeReply(reply);
}
