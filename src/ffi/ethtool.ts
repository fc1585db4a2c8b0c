/** Offloads of a link (linux/ethtool.h, SIOCETHTOOL of linux/sockios.h), in the namespace of the thread. */
import { closeFile } from "./files.ts";
import { check, cString, libc } from "./libc.ts";
import { ptr } from "./native.ts";
import { AF_INET, openSocket, SOCK_DGRAM } from "./socket/socket.ts";

const SIOCETHTOOL = 0x8946, ETHTOOL_GTXCSUM = 0x16, ETHTOOL_STXCSUM = 0x17;
const NAME_BYTES = 16, IFREQ_BYTES = 40;

/** Whether the link leaves checksums of packets that it sends to a device that will never compute them. */
export function offloadsTxChecksums(ifName: string): boolean {
  return request(ifName, ETHTOOL_GTXCSUM, 0) !== 0;
}

/** Without it, the kernel computes them, and cuts packets to the MTU itself. */
export function setTxChecksumOffload(ifName: string, isOn: boolean): void {
  request(ifName, ETHTOOL_STXCSUM, isOn ? 1 : 0);
}

/** Returns what the kernel has written into struct ethtool_value. */
function request(ifName: string, command: number, value: number): number {
  const argument = Uint32Array.of(command, value), name = cString(ifName);
  const ifreq = new Uint8Array(IFREQ_BYTES); // name of 16 bytes, then the address of the argument
  ifreq.set(name.subarray(0, NAME_BYTES - 1));
  new DataView(ifreq.buffer).setBigUint64(NAME_BYTES, BigInt(ptr(argument)), true);
  const fd = openSocket("socket", AF_INET, SOCK_DGRAM);
  try {
    check("ioctl SIOCETHTOOL", libc.ioctl(fd, SIOCETHTOOL, ifreq), ifName);
    return argument[1]!;
  } finally {
    closeFile(fd);
  }
}
