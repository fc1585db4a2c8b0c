/** dummy: a link that drops every packet. It has no settings (drivers/net/dummy.c). */
import type { LinkFormat } from "../link-kind.ts";

export const dummy: LinkFormat<Record<string, never>> = {
  kind: () => ({ name: "dummy" }),
  settings: () => ({}),
};
