/** Offloads of a link (linux/ethtool.h, SIOCETHTOOL of linux/sockios.h), in the namespace of the thread. */
import { whileOpen } from "./files.ts";
import { check, cString, libc } from "./libc.ts";
import { ptr } from "./native.ts";
import { AF_INET, openSocket, SOCK_DGRAM } from "./socket/socket.ts";

const SIOCETHTOOL = 0x8946, ETHTOOL_GTXCSUM = 0x16, ETHTOOL_STXCSUM = 0x17;
const ETHTOOL_GSSET_INFO = 0x37, ETH_SS_FEATURES = 4, ETHTOOL_GFEATURES = 0x3a, ETHTOOL_SFEATURES = 0x3b;
const NAME_BYTES = 16, IFREQ_BYTES = 40;

/** Whether the link leaves checksums of packets that it sends to a device that will never compute them. */
export function offloadsTxChecksums(ifName: string): boolean {
  return request(ifName, ETHTOOL_GTXCSUM, 0) !== 0;
}

/** Without it, the kernel computes them, and cuts packets to the MTU itself. */
export function setTxChecksumOffload(ifName: string, isOn: boolean): void {
  request(ifName, ETHTOOL_STXCSUM, isOn ? 1 : 0);
}

/** What is asked of the device (struct ethtool_gfeatures): words of 32 bits, a bit for each offload that the kernel knows. */
export function wantedFeatures(ifName: string): number[] {
  const blocks = featureBlocks(ifName);
  const wanted: number[] = [];
  for (let at = 0; at < blocks.length; at += 4) wanted.push(blocks[at + 1]!);
  return wanted;
}

/** Asks for what differs. The driver may refuse some, which stay as they are. */
export function askForFeatures(ifName: string, wanted: readonly number[]): void {
  const blocks = featureBlocks(ifName), count = blocks.length / 4;
  if (count !== wanted.length) return;
  // struct ethtool_sfeatures: which bits are meant, then their values.
  const argument = new Uint32Array(2 + 2 * count);
  argument.set([ETHTOOL_SFEATURES, count]);
  let differs = false;
  for (let at = 0; at < count; at++) {
    const [available, before, , fixed] = blocks.subarray(4 * at, 4 * at + 4) as unknown as [
      number,
      number,
      number,
      number,
    ];
    const changed = ((before ^ wanted[at]!) & available & ~fixed) >>> 0;
    argument.set([changed, (wanted[at]! & changed) >>> 0], 2 + 2 * at);
    differs ||= changed !== 0;
  }
  if (differs) send(ifName, argument);
}

/** Four words each: what can be asked for, what is asked for, what is active, and what can never be changed. */
function featureBlocks(ifName: string): Uint32Array {
  // struct ethtool_sset_info: command, reserved, mask of 64 bits, and the number of features.
  const info = Uint32Array.of(ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0);
  send(ifName, info);
  const count = Math.ceil(info[4]! / 32), argument = new Uint32Array(2 + 4 * count);
  argument.set([ETHTOOL_GFEATURES, count]);
  send(ifName, argument);
  return argument.subarray(2);
}

/** Returns what the kernel has written into struct ethtool_value. */
function request(ifName: string, command: number, value: number): number {
  const argument = Uint32Array.of(command, value);
  send(ifName, argument);
  return argument[1]!;
}

/** The kernel writes its answer into the argument. */
function send(ifName: string, argument: Uint32Array): void {
  const name = cString(ifName);
  const ifreq = new Uint8Array(IFREQ_BYTES); // name of 16 bytes, then the address of the argument
  ifreq.set(name.subarray(0, NAME_BYTES - 1));
  new DataView(ifreq.buffer).setBigUint64(NAME_BYTES, BigInt(ptr(argument)), true);
  whileOpen(openSocket("socket", AF_INET, SOCK_DGRAM), (fd) => {
    check("ioctl SIOCETHTOOL", libc.ioctl(fd, SIOCETHTOOL, ifreq), ifName);
  });
}
