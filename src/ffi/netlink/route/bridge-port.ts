/** What a bridge does at one of its ports: `bridge link set`. */
import { type AttrsOf, attrTable, nest } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { IFLA_PROTINFO } from "../uapi/if-link.ts";
import { AF_BRIDGE, RTM_SETLINK } from "../uapi/rtnetlink.ts";
import { bridgePortData } from "./kinds/bridge.ts";
import { linkHeader } from "./link-header.ts";

const portAttrs = attrTable("IFLA(AF_BRIDGE)", { port: nest(IFLA_PROTINFO, bridgePortData) });

/** `bridge link set dev … hairpin … isolated …`. */
export function setBridgePort(
  socket: NetlinkSocket,
  link: { index: number; name: string },
  settings: { hairpin?: boolean; isolated?: boolean },
): void {
  const port: AttrsOf<typeof bridgePortData.rows> = {};
  if (settings.hairpin !== undefined) port.hairpin = Number(settings.hairpin);
  if (settings.isolated !== undefined) port.isolated = Number(settings.isolated);
  socket.request({
    what: `RTM_SETLINK bridge port ${link.name}`,
    type: RTM_SETLINK,
    table: portAttrs,
    fixedBytes: linkHeader.bytes,
    body: (writer) => {
      linkHeader.write(writer, { family: AF_BRIDGE, index: link.index });
      portAttrs.encode(writer, { port });
    },
  });
}
