/** Kernels without netfilter or nf_tables. */
import type { Host } from "../../../contract/host.ts";
import { EPROTONOSUPPORT, isErrno } from "../../../ffi/errno.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";

/** The host's netfilter socket, or undefined where the kernel has no netfilter: then there is nothing to remove. */
export function netfilterOf(host: Host): NetlinkSocket | undefined {
  try {
    return host.netfilter;
  } catch (error) {
    if (isErrno(error, EPROTONOSUPPORT)) return undefined;
    throw error;
  }
}

/** `what` begins the text: "ipMasq needs". */
export function lacksNfTables(what: string): Error {
  return new Error(`${what} nf_tables, which this kernel does not have`);
}
