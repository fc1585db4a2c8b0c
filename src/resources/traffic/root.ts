/** Where the limit of a link stands: at its root, with a handle that tells ours from what the kernel puts there. */
import { tcHandle } from "../../ffi/netlink/tc/tc-header.ts";
import { TC_H_ROOT } from "../../ffi/netlink/uapi/pkt-sched.ts";

export const ROOT = { parent: TC_H_ROOT, handle: tcHandle(1) };
