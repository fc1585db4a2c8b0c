/** Our qdisc is a link's root qdisc. The handle tells it from the kernel's default one. */
import { tcHandle } from "../../../ffi/netlink/tc/tc-header.ts";
import { TC_H_ROOT } from "../../../ffi/netlink/uapi/pkt-sched.ts";

export const ROOT = { parent: TC_H_ROOT, handle: tcHandle(1) };
