/** Messages with what goes beside their bytes: an address, descriptors, what the kernel says of them (recvmsg(2), cmsg(3)). */
import { closeFile } from "../files.ts";
import { bind } from "../libc.ts";
import { FFIType, ptr } from "../native.ts";
import { MSG_CMSG_CLOEXEC, MSG_NOSIGNAL, SCM_CREDENTIALS, SCM_RIGHTS, SOL_SOCKET } from "./socket.ts";

const symbols = bind({
  recvmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
  sendmsg: { args: ["i32", "ptr", "i32"], returns: FFIType.i64_fast },
});

const CONTROL_HEADER_BYTES = 16, CONTROL_BYTES = 64, NAME_BYTES = 32, DESCRIPTOR_BYTES = 4;
/** A control message with struct ucred. */
const CREDENTIALS_BYTES = CONTROL_HEADER_BYTES + 12;

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

/** Messages are handled one after the other: nothing else runs between filling a header and using it. */
const receiving = newHeader(), sending = newHeader();

function fill({ fields, part, name, control }: Header, bytes: Uint8Array, nameLength: number, controlLength: number) {
  part[0] = bytes.length === 0 ? 0n : BigInt(ptr(bytes));
  part[1] = BigInt(bytes.length);
  fields[0] = nameLength === 0 ? 0n : BigInt(ptr(name));
  fields[1] = BigInt(nameLength);
  fields[2] = BigInt(ptr(part));
  fields[3] = 1n;
  fields[4] = controlLength === 0 ? 0n : BigInt(ptr(new Uint8Array(control.buffer)));
  fields[5] = BigInt(controlLength);
  fields[6] = 0n;
}

function receive(fd: number, bytes: Uint8Array, nameLength: number, controlLength: number, flags: number): number {
  fill(receiving, bytes, nameLength, controlLength);
  return Number(symbols.recvmsg(fd, receiving.fields, flags));
}

/**
 * The length of the message that is in `bytes` now: 0 when the other end is closed, negative on failure (errno(3)). The
 * kernel closes the descriptors that come with it.
 */
export function receiveMessage(fd: number, bytes: Uint8Array): number {
  return receive(fd, bytes, 0, 0, 0);
}

export interface Received {
  /** As `receiveMessage` returns it. */
  length: number;
  /** The caller closes them. A message without bytes has no descriptors: those that came with it are closed. */
  descriptors: number[];
}

/** Receives up to `most` descriptors. The kernel closes the others. */
export function receiveWithDescriptors(fd: number, bytes: Uint8Array, most: number): Received {
  const room = CONTROL_HEADER_BYTES + DESCRIPTOR_BYTES * most;
  const length = receive(fd, bytes, 0, room, MSG_CMSG_CLOEXEC);
  if (length > 0) return { length, descriptors: descriptorsOfLast() };
  if (length === 0) closeDescriptorsOfLast();
  return { length, descriptors: [] };
}

function closeDescriptorsOfLast(): void {
  for (const fd of descriptorsOfLast()) closeFile(fd);
}

function descriptorsOfLast(): number[] {
  const data = controlOfLast(SOL_SOCKET, SCM_RIGHTS), found: number[] = [];
  for (let at = 0; data !== undefined && at + DESCRIPTOR_BYTES <= data.byteLength; at += DESCRIPTOR_BYTES) {
    found.push(data.getInt32(at, true));
  }
  return found;
}

/** The process that sent the next message, on a socket with SO_PASSCRED; undefined when there is no message. */
export function receiveSender(fd: number): number | undefined {
  const length = receive(fd, new Uint8Array(1), 0, CREDENTIALS_BYTES, MSG_CMSG_CLOEXEC);
  if (length < 0) return undefined;
  closeDescriptorsOfLast();
  return controlOfLast(SOL_SOCKET, SCM_CREDENTIALS)?.getInt32(0, true);
}

/** For a socket that carries no descriptors. `senderOfLast` and `controlOfLast` have what came with the packet. */
export function receivePacket(fd: number, bytes: Uint8Array): number {
  return receive(fd, bytes, NAME_BYTES, CONTROL_BYTES, 0);
}

/** The sender of the packet that was received last: a struct sockaddr, valid until the next packet. */
export function senderOfLast(): Uint8Array {
  return receiving.name;
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

/** Returns how many bytes went, or a negative number (errno(3)). It takes at most twelve descriptors. */
export function sendMessage(fd: number, bytes: Uint8Array, descriptors: readonly number[] = []): number {
  const size = CONTROL_HEADER_BYTES + DESCRIPTOR_BYTES * descriptors.length;
  fill(sending, bytes, 0, descriptors.length === 0 ? 0 : size);
  sending.control.setBigUint64(0, BigInt(size), true);
  sending.control.setInt32(8, SOL_SOCKET, true);
  sending.control.setInt32(12, SCM_RIGHTS, true);
  descriptors.forEach((one, index) =>
    sending.control.setInt32(CONTROL_HEADER_BYTES + DESCRIPTOR_BYTES * index, one, true)
  );
  return Number(symbols.sendmsg(fd, sending.fields, MSG_NOSIGNAL));
}
