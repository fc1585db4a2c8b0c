/** DHCPv6 messages that a capture has seen. */
import { decode, type Message6 } from "../../../src/services/dhcp/v6/message/message.ts";
import type { Frame } from "./capture.ts";

export * from "../../../src/services/dhcp/v6/message/message.ts";

const CLIENT_PORT = 546, SERVER_PORT = 547;

export function messages6(frames: readonly Frame[]): (Frame & { message: Message6 })[] {
  return frames.flatMap((frame) => {
    const isOurs = [CLIENT_PORT, SERVER_PORT].includes(frame.destinationPort ?? 0);
    const message = isOurs && frame.type === 0x86dd ? decode(frame.payload!) : undefined;
    return message === undefined ? [] : [{ ...frame, message }];
  });
}

/** In order; see the numbers of messages. */
export function kindsOf(frames: readonly Frame[]): number[] {
  return messages6(frames).map(({ message }) => message.type);
}
