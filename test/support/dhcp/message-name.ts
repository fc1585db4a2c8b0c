/** The names of DHCPv4's messages. Pure. */
import type { Message } from "../../../src/services/dhcp/v4/message/message.ts";
import { option } from "../../../src/services/dhcp/v4/message/message.ts";

const names = ["DISCOVER", "OFFER", "REQUEST", "DECLINE", "ACK", "NAK", "RELEASE", "INFORM"] as const;

export type MessageName = typeof names[number];

export function kindOf(message: Message | undefined): MessageName | undefined {
  return names[(message?.options.get(option.messageType)?.[0] ?? 0) - 1];
}
