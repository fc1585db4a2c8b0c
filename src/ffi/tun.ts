/** Taps: `ip tuntap add mode tap` (linux/if_tun.h, Documentation/networking/tuntap.rst). */
import type { Pointer } from "bun:ffi";
import { EBUSY, isErrno } from "./errno.ts";
import { closeFile, O_RDWR, openFile } from "./files.ts";
import { check, libc, utf8 } from "./libc.ts";

const DEVICE = "/dev/net/tun";
const TUNSETIFF = 0x400454ca, TUNSETPERSIST = 0x400454cb, TUNSETOWNER = 0x400454cc, TUNSETGROUP = 0x400454ce;
const TUNSETIFINDEX = 0x400454da;
const IFF_TAP = 0x0002, IFF_MULTI_QUEUE = 0x0100, IFF_NO_PI = 0x1000, IFF_VNET_HDR = 0x4000, IFF_TUN_EXCL = 0x8000;

export interface TapSettings {
  /** Without one the kernel picks it. */
  index?: number;
  multiQueue: boolean;
  /** User that may open it besides root; without one, anybody may. */
  owner?: number;
  group?: number;
}

/** Makes a persistent tap in the namespace of the thread. Returns false when the name or the index is taken. */
export function addTap(name: string, { index, multiQueue, owner, group }: TapSettings): boolean {
  const fd = openFile(DEVICE, O_RDWR);
  try {
    const request = new Uint8Array(40); // struct ifreq: name of 16 bytes, then flags u16
    request.set(utf8(name).subarray(0, 15));
    // A program that opens the tap chooses headers anew, but not whether it has several queues.
    const queues = multiQueue ? IFF_MULTI_QUEUE : 0;
    new DataView(request.buffer).setUint16(16, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL | queues, true);
    if (index !== undefined) {
      check("ioctl TUNSETIFINDEX", libc.ioctl(fd, TUNSETIFINDEX, Int32Array.of(index)), `${index}`);
    }
    check("ioctl TUNSETIFF", libc.ioctl(fd, TUNSETIFF, request), name);
    if (owner !== undefined) check("ioctl TUNSETOWNER", setTo(fd, TUNSETOWNER, owner), `${owner}`);
    if (group !== undefined) check("ioctl TUNSETGROUP", setTo(fd, TUNSETGROUP, group), `${group}`);
    check("ioctl TUNSETPERSIST", setTo(fd, TUNSETPERSIST, 1), name);
    return true;
  } catch (error) {
    if (isErrno(error, EBUSY)) return false;
    throw error;
  } finally {
    closeFile(fd);
  }
}

/** These requests take the value itself where others take an address. */
function setTo(fd: number, request: number, value: number): number {
  return libc.ioctl(fd, request, value as Pointer);
}

/** Why this host cannot make taps; undefined when it can. */
export function whyNoTaps(): string | undefined {
  try {
    closeFile(openFile(DEVICE, O_RDWR));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
