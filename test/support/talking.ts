/**
 * Programs that talk to a resident over its socket in ways of their own: text for `bun -e`, to be run in a machine. Each
 * begins with what stands here.
 */
import { Elf, PT_LOAD } from "../../compile/elf.ts";
import { buildOf } from "../../src/engine/build.ts";
import { PATCHBAY } from "./plugins.ts";
import { SOCKET } from "./resident.ts";

/** Where the program's file says which build it is (src/engine/build.ts). */
export function buildOffset(program: Uint8Array): number {
  return new Elf(program).segments.filter(({ type }) => type === PT_LOAD).at(-1)!.offset + 24;
}

/**
 * `open()` connects, `send(fd, bytes, descriptors)` sends a message, `hear(fd)` answers the next one's bytes, and
 * `version` is the request of `patchbay version`.
 */
export const talking = () => `
  import { bind, libc } from "${import.meta.dir}/../../src/ffi/libc.ts";
  import { ptr } from "${import.meta.dir}/../../src/ffi/native.ts";
  const socket = bind({
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i64_fast" },
    sendmsg: { args: ["i32", "ptr", "i32"], returns: "i64_fast" },
  });
  const address = new Uint8Array([1, 0, ...new TextEncoder().encode("${SOCKET}"), 0]);
  function open() {
    const fd = libc.socket(1, 5 | 0o2000000, 0);
    if (socket.connect(fd, address, address.length) !== 0) throw new Error("connect");
    return fd;
  }
  function send(fd, bytes, descriptors = []) {
    const control = new DataView(new ArrayBuffer(16 + 4 * descriptors.length));
    control.setBigUint64(0, BigInt(control.byteLength), true);
    control.setInt32(8, 1, true);
    control.setInt32(12, 1, true);
    descriptors.forEach((one, index) => control.setInt32(16 + 4 * index, one, true));
    const part = BigUint64Array.of(BigInt(ptr(bytes)), BigInt(bytes.length));
    const controlled = descriptors.length === 0 ? [0n, 0n] : [ptr(new Uint8Array(control.buffer)), control.byteLength];
    const header = BigUint64Array.of(0n, 0n, BigInt(ptr(part)), 1n, ...controlled.map(BigInt), 0n);
    return Number(socket.sendmsg(fd, new Uint8Array(header.buffer), 0x4000));
  }
  const heard = new Uint8Array(200000);
  const hear = (fd) => heard.slice(0, Math.max(0, Number(socket.recv(fd, heard, heard.length, 0))));
  const close = (fd) => libc.close(fd);
  const numbers = new Uint8Array(Uint32Array.of(0x31424350, 2, 0).buffer);
  const texts = new TextEncoder().encode("/\\0patchbay\\0version\\0");
  const version = new Uint8Array([...numbers, ...${JSON.stringify([...buildOf(PATCHBAY)])}, ...texts]);
  const GO = new TextEncoder().encode("GO\\0");
`;
