/** ifb: a link that incoming packets are redirected to for queueing. It has no settings (drivers/net/ifb.c). */
import type { LinkKind } from "../link-kind.ts";

export const ifbKind: LinkKind = { name: "ifb" };
