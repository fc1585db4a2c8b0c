/** An unused name for a link of the host. */
import type { Host } from "../../../contract/host.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { randomBytes } from "../../../ffi/random.ts";

/** `veth` and eight hexadecimal digits, as the reference plugins choose it. */
export function freshHostName(host: Host): string {
  for (;;) {
    const name = `veth${randomBytes(4).toHex()}`;
    if (linkIndex(host.route, name) === undefined) return name;
  }
}
