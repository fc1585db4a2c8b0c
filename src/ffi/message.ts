/** Messages with what goes beside their bytes: an address, descriptors, what the kernel says of them (recvmsg(2), cmsg(3)). */
import { bind, libc } from "./libc.ts";
import { FFIType, ptr } from "./native.ts";

const symbols = bind({
  recvmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
  sendmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
});

const SOL_SOCKET = 1, SCM_RIGHTS = 1;
const MSG_CMSG_CLOEXEC = 0x40000000, MSG_NOSIGNAL = 0x4000;
const CONTROL_HEADER_BYTES = 16, CONTROL_BYTES = 64, NAME_BYTES = 32;

/** struct msghdr, its struct iovec, the sender's address and the control messages. */
interface Header {
  fields: BigUint64Array;
  part: BigUint64Array;
  name: Uint8Array;
  control: DataView<ArrayBuffer>;
}

function newHeader(): Header {
  return {
    fields: new BigUint64Array(7),
    part: new BigUint64Array(2),
    name: new Uint8Array(NAME_BYTES),
    control: new DataView(new ArrayBuffer(CONTROL_BYTES)),
  };
}

/** One after the other: nothing else runs between filling one and using it. */
const receiving = newHeader(), sending = newHeader();

function fill({ fields, part, name, control }: Header, bytes: Uint8Array, nameLength: number, controlLength: number) {
  part[0] = BigInt(ptr(bytes));
  part[1] = BigInt(bytes.length);
  fields[0] = nameLength === 0 ? 0n : BigInt(ptr(name));
  fields[1] = BigInt(nameLength);
  fields[2] = BigInt(ptr(part));
  fields[3] = 1n;
  fields[4] = controlLength === 0 ? 0n : BigInt(ptr(new Uint8Array(control.buffer)));
  fields[5] = BigInt(controlLength);
  fields[6] = 0n;
}

/**
 * The length of the message that is in `bytes` now: 0 when the other end is closed, negative on failure (errno(3)).
 * Sockets that carry no descriptors refuse the flag for them.
 */
export function receiveMessage(fd: number, bytes: Uint8Array, flags = MSG_CMSG_CLOEXEC): number {
  fill(receiving, bytes, NAME_BYTES, CONTROL_BYTES);
  return Number(symbols.recvmsg(fd, receiving.fields, flags));
}

/** Who sent the message that was received last: a struct sockaddr. Valid until the next one. */
export function senderOfLast(): Uint8Array {
  return receiving.name;
}

/** The descriptors that came with the message that was received last. */
export function descriptorsOfLast(): number[] {
  const data = controlOfLast(SOL_SOCKET, SCM_RIGHTS), found: number[] = [];
  for (let at = 0; data !== undefined && at + 4 <= data.byteLength; at += 4) found.push(data.getInt32(at, true));
  return found;
}

/** The data of the first control message of this kind that came with the message that was received last. */
export function controlOfLast(level: number, type: number): DataView | undefined {
  const { control, fields } = receiving, length = Math.min(Number(fields[5]), CONTROL_BYTES);
  for (let at = 0; at + CONTROL_HEADER_BYTES <= length;) {
    const size = Number(control.getBigUint64(at, true));
    if (size < CONTROL_HEADER_BYTES) return undefined;
    const end = Math.min(at + size, length);
    if (control.getInt32(at + 8, true) === level && control.getInt32(at + 12, true) === type) {
      return new DataView(control.buffer, at + CONTROL_HEADER_BYTES, end - at - CONTROL_HEADER_BYTES);
    }
    at += (size + 7) & ~7;
  }
  return undefined;
}

/** Answers how many bytes went, or a negative number (errno(3)). */
export function sendMessage(fd: number, bytes: Uint8Array, descriptors: readonly number[] = []): number {
  fill(sending, bytes, 0, descriptors.length === 0 ? 0 : CONTROL_HEADER_BYTES + 8);
  sending.control.setBigUint64(0, BigInt(CONTROL_HEADER_BYTES + 4 * descriptors.length), true);
  sending.control.setInt32(8, SOL_SOCKET, true);
  sending.control.setInt32(12, SCM_RIGHTS, true);
  descriptors.forEach((fd, index) => sending.control.setInt32(CONTROL_HEADER_BYTES + 4 * index, fd, true));
  return Number(symbols.sendmsg(fd, sending.fields, MSG_NOSIGNAL));
}

const SO_PEERCRED = 17;

/** The process at the other end of a socket of unix(7), as it was when it connected. */
export function peerOf(fd: number): { pid: number; uid: number } | undefined {
  const credentials = new Int32Array(3), length = Int32Array.of(12);
  if (libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length) !== 0) return undefined;
  return { pid: credentials[0]!, uid: credentials[1]! };
}
