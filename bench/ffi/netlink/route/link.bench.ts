/** Encoding the largest request of an attach: a veth pair with its end in the container. */
import { addLink } from "../../../../src/ffi/netlink/route/link.ts";
import { vethKind } from "../../../../src/ffi/netlink/route/link-kinds.ts";
import type { NetlinkRequest, NetlinkSocket } from "../../../../src/ffi/netlink/socket.ts";
import { NLM_F_REQUEST, Writer } from "../../../../src/ffi/netlink/wire.ts";

const writer = new Writer();
const encoder = {
  request({ type, body }: NetlinkRequest) {
    writer.reset().start(type, NLM_F_REQUEST, 1);
    body(writer);
    writer.finish();
  },
} as NetlinkSocket;
const address = new Uint8Array([0x02, 0, 0, 0, 0, 1]);

export const tasks = {
  "encode a veth pair": () =>
    addLink(encoder, {
      ifName: "veth01234567",
      address,
      master: 3,
      up: true,
      kind: vethKind({ peer: { ifName: "eth0", address, netnsFd: 9 } }),
    }),
};
