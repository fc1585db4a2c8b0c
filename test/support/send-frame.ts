/** Sends Ethernet frames, each in hex, which may claim any source: `send-frame LINK FRAME…`. See packet(7). */
import { readFileSync } from "node:fs";
import { check, libc } from "../../src/ffi/libc.ts";

const [link, ...frames] = process.argv.slice(2) as [string, ...string[]];
const AF_PACKET = 17, SOCK_RAW = 3, SHORTEST_BYTES = 60;
const fd = check("socket", libc.socket(AF_PACKET, SOCK_RAW, 0));

/** struct sockaddr_ll: family u16, protocol u16be, index s32, type u16, packet type u8, length u8, address 8 */
const address = new Uint8Array(20);
const view = new DataView(address.buffer);
view.setUint16(0, AF_PACKET, true);
view.setInt32(4, Number(readFileSync(`/sys/class/net/${link}/ifindex`, "utf8")), true);

for (const hex of frames) {
  const bytes = Uint8Array.fromHex(hex), frame = new Uint8Array(Math.max(SHORTEST_BYTES, bytes.length));
  frame.set(bytes);
  check("sendto", Number(libc.sendto(fd, frame, frame.length, 0, address, address.length)));
}
libc.close(fd);
