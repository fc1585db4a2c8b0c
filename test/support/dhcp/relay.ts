/** ISC's relay between the machine's network, 192.168.78.0/24, and the server. It adds option 82 and sets giaddr. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { RelayedSegment } from "./link.ts";
import type { Offer4 } from "./offer.ts";
import type { Running } from "./running.ts";
import { ownCopy } from "./server.ts";

/** What servers behind a relay are to offer. */
export const FAR_OFFER4 = {
  range: ["192.168.78.100", "192.168.78.120"],
  subnet: "192.168.78.0/24",
  routers: ["192.168.78.1"],
} as const satisfies Offer4;

/** Stop it to lose everything that is broadcast. Its log says nothing of what it forwards. */
export async function startRelay(segment: RelayedSegment): Promise<Running> {
  const folder = join(segment.folder, "dhcrelay");
  mkdirSync(folder, { recursive: true });
  const links = ["-id", "dn0", "-iu", "up0"], log = join(folder, `log-${Date.now()}`);
  const command = [ownCopy("dhcrelay", { folder }), "-4", "-d", "-a", ...links, "--no-pid", segment.site.address];
  const relay = segment.start(segment.relay, command, { log });
  await relay.until(() => /^Sending on +Socket/m.test(relay.log()));
  return relay;
}
