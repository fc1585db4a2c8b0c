/** ifb: a link that packets are sent to for their queueing (drivers/net/ifb.c). It has no settings. */
import type { LinkKind } from "../link-kind.ts";

export const ifbKind: LinkKind = { name: "ifb" };
