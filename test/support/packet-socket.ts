/** Ethernet frames with whatever a sender claims. See packet(7). */
import { check, libc } from "../../src/ffi/libc.ts";

const AF_PACKET = 17, SOCK_RAW = 3, SHORTEST_BYTES = 60;

/** Sends each frame, in hex, by the link with that index in this thread's namespace. */
export function sendFrames(linkIndex: number, frames: readonly string[]): void {
  const fd = check("socket", libc.socket(AF_PACKET, SOCK_RAW, 0));
  /** struct sockaddr_ll: family u16, protocol u16be, index s32, type u16, packet type u8, length u8, address 8 */
  const address = new Uint8Array(20);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setInt32(4, linkIndex, true);
  try {
    for (const hex of frames) {
      const bytes = Uint8Array.fromHex(hex), frame = new Uint8Array(Math.max(SHORTEST_BYTES, bytes.length));
      frame.set(bytes);
      check("sendto", Number(libc.sendto(fd, frame, frame.length, 0, address, address.length)));
    }
  } finally {
    libc.close(fd);
  }
}
