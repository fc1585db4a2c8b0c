/**
 * Whether the kernel has a queueing discipline or an action, asked without making one: the kernel looks for the kind,
 * and loads its module, before it rejects the rest of the request. This does not work for filters, which the kernel
 * rejects whatever their kind where there is no queueing discipline for them.
 */
import { EEXIST, EINVAL, ENOENT, EPERM } from "../../errno.ts";
import { attrTable, custom, nestedList, text } from "../attrs.ts";
import { insteadOfRefusal, isNetlinkError, type NetlinkRequest, type NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "../wire.ts";
import { TC_H_INGRESS, TC_H_ROOT, TCA_ACT_KIND } from "../uapi/traffic-control.ts";
import { RTM_NEWACTION, RTM_NEWQDISC, TCA_ACT_TAB, TCA_KIND, TCA_STAB } from "../uapi/rtnetlink.ts";
import { tcHandle, tcHeader } from "./tc-object.ts";

const qdiscAttrs = attrTable("TCA", {
  kind: text(TCA_KIND),
  /** An empty table of sizes, which every kernel rejects. */
  noSizes: custom<true>(TCA_STAB, { nested: true, write: () => {}, read: () => true }),
});

const actionsAttrs = attrTable("TCA_ROOT", {
  actions: nestedList(TCA_ACT_TAB, 1, attrTable("TCA_ACT", { kind: text(TCA_ACT_KIND) })),
});

export function knowsQdisc(socket: NetlinkSocket, kind: string): boolean {
  const ingress = kind === "ingress";
  const place = ingress ? { parent: TC_H_INGRESS, handle: tcHandle(0xffff) } : { parent: TC_H_ROOT };
  return isKindKnown(socket, {
    what: `RTM_NEWQDISC ${kind} on lo`,
    type: RTM_NEWQDISC,
    body(writer) {
      tcHeader.write(writer, { linkIndex: 1, ...place });
      qdiscAttrs.encode(writer, { kind, noSizes: true });
    },
  });
}

/**
 * For actions that require options, such as mirred. Undefined when the kernel does not tell: an action by itself takes
 * CAP_NET_ADMIN in the first user namespace, and a filter with that action takes it in the network's own only.
 */
export function knowsAction(socket: NetlinkSocket, kind: string): boolean | undefined {
  const request: NetlinkRequest = {
    what: `RTM_NEWACTION ${kind}`,
    type: RTM_NEWACTION,
    body(writer) {
      writer.u8(0).u8(0).u16(0); // struct tcamsg: family u8, pads u8 u16
      actionsAttrs.encode(writer, { actions: [{ kind }] });
    },
  };
  return insteadOfRefusal([EPERM], undefined, () => isKindKnown(socket, request));
}

/** `request` must be one that the kernel rejects. */
function isKindKnown(socket: NetlinkSocket, request: NetlinkRequest): boolean {
  try {
    socket.request({ ...request, flags: NLM_F_CREATE | NLM_F_EXCL });
  } catch (error) {
    // EEXIST: lo has one already.
    if (isNetlinkError(error, EINVAL, EEXIST)) return true;
    if (isNetlinkError(error, ENOENT)) return false;
    throw error;
  }
  throw new Error(`${request.what}: the kernel did what cannot be done`);
}
