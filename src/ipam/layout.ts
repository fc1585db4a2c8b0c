/**
 * The lease index: one file a block of at most 65,536 addresses, mapped by every process that works on the network.
 *
 *     offset  width    meaning                                          written
 *     0       4        magic "PBLX"                                     when the file is made, like all of the header
 *     4       4        format version
 *     8       4        number of addresses, n
 *     12      4        offset of the slots
 *     16      4        offset of the times of release
 *     20      4        address family, 4 or 6
 *     24      4        1 when leases outlive a reboot
 *     28      4        zero
 *     32      16       first address of the block, network byte order, zeros behind an IPv4 address
 *     48      16       boot id of the running kernel
 *     64      4 × n    slots: 0 for a free address, else the tag of its owner      compare-and-swap
 *     64+4n   4 × n    second of release on the monotonic clock; 0 never; −1 while being claimed
 *
 * Numbers are in host byte order, which the magic shows: the file serves one machine for one boot. It is an index of the
 * lease files beside it (go-directory.ts) and can be made again from them at any time, so a file that is not exactly as
 * expected is replaced, never interpreted. See docs/lease-store.md.
 */
import { compareAddresses, formatAddress, networkOf, parsePrefix, type Prefix } from "../net/address.ts";

const MAGIC = 0x584c4250;
const VERSION = 1;
const HEADER_BYTES = 64;
const KEEP_WORD = 6;
const FIRST_ADDRESS_AT = 32;
const BOOT_ID_AT = 48;

/** A subnet of at most this many address bits is one block. */
const WHOLE_SUBNET_BITS = 16;

/** A larger subnet has blocks of this size, only where there are leases. */
const PART_BITS = 12;

/** In place of a time of release: a process is claiming the address, or died over it. */
export const CLAIMING = -1;

export interface Block {
  readonly prefix: Prefix;
  readonly buffer: ArrayBuffer;
  readonly slots: Int32Array;
  readonly times: Int32Array;
}

/** The prefix of the block that contains the address. */
export function blockPrefix(subnet: Prefix, address: Uint8Array): Prefix {
  const bits = addressBits(subnet) <= WHOLE_SUBNET_BITS ? subnet.bits : address.length * 8 - PART_BITS;
  return { bytes: networkOf({ bytes: address, bits }), bits };
}

/** `10.88.0.0-16`, because file names cannot contain a slash. */
export function blockName(prefix: Prefix): string {
  return `${formatAddress(prefix.bytes)}-${prefix.bits}`;
}

/** The prefix of the block with this file name; undefined for other files. */
export function blockPrefixOf(name: string): Prefix | undefined {
  const dash = name.lastIndexOf("-");
  const prefix = parsePrefix(`${name.slice(0, dash)}/${name.slice(dash + 1)}`);
  if (prefix === undefined || addressBits(prefix) > WHOLE_SUBNET_BITS) return undefined;
  return compareAddresses(networkOf(prefix), prefix.bytes) === 0 ? prefix : undefined;
}

function addressBits({ bytes, bits }: Prefix): number {
  return bytes.length * 8 - bits;
}

export function blockCount(prefix: Prefix): number {
  return 1 << addressBits(prefix);
}

export function blockSizeBytes(prefix: Prefix): number {
  return HEADER_BYTES + 8 * blockCount(prefix);
}

/** The index of the address in its block. */
export function indexIn(prefix: Prefix, address: Uint8Array): number {
  const { length } = address;
  return ((address[length - 2]! << 8) | address[length - 1]!) & (blockCount(prefix) - 1);
}

export function addressAt(prefix: Prefix, index: number): Uint8Array {
  const address = prefix.bytes.slice();
  const { length } = address;
  address[length - 2]! |= index >> 8;
  address[length - 1]! |= index & 0xff;
  return address;
}

function header(prefix: Prefix, bootId: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const count = blockCount(prefix);
  const family = prefix.bytes.length === 4 ? 4 : 6;
  new Int32Array(bytes.buffer).set([MAGIC, VERSION, count, HEADER_BYTES, HEADER_BYTES + 4 * count, family]);
  bytes.set(prefix.bytes, FIRST_ADDRESS_AT);
  bytes.set(bootId, BOOT_ID_AT);
  return bytes;
}

/** A block without leases. */
export function emptyBlock(prefix: Prefix, bootId: Uint8Array): Block {
  const bytes = new Uint8Array(blockSizeBytes(prefix));
  bytes.set(header(prefix, bootId));
  return viewBlock(prefix, bytes.buffer);
}

export function viewBlock(prefix: Prefix, buffer: ArrayBuffer): Block {
  const count = blockCount(prefix);
  return {
    prefix,
    buffer,
    slots: new Int32Array(buffer, HEADER_BYTES, count),
    times: new Int32Array(buffer, HEADER_BYTES + 4 * count, count),
  };
}

/** Whether the header is that of a block of this prefix, and of which boot. */
export function judgeHeader(block: Block, bootId: Uint8Array): "current" | "earlier boot" | "damaged" {
  const found = new Int32Array(block.buffer, 0, HEADER_BYTES / 4);
  const expected = new Int32Array(header(block.prefix, bootId).buffer);
  for (let word = 0; word < expected.length; word++) {
    if (found[word] === expected[word] || word === KEEP_WORD) continue;
    return word < BOOT_ID_AT / 4 ? "damaged" : "earlier boot";
  }
  return "current";
}

/** Whether leases of the block outlive a reboot, according to the configuration of the last ADD. */
export function keepsLeases({ buffer }: Block): boolean {
  return new Int32Array(buffer, 0, HEADER_BYTES / 4)[KEEP_WORD] === 1;
}

export function setKeepsLeases(block: Block, keep: boolean): void {
  if (keepsLeases(block) !== keep) new Int32Array(block.buffer, 0, HEADER_BYTES / 4)[KEEP_WORD] = keep ? 1 : 0;
}
