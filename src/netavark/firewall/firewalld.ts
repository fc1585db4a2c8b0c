/** Whether firewalld lets other programs forward ports. */
import { firewalldProperty, requireBus, whyNotRunning } from "../../firewalld/client.ts";
import { within } from "../../resources/netavark/shared/failure.ts";
import { log } from "../../resources/netavark/shared/log.ts";

const STRICT = "StrictForwardPorts";

/** For the driver that needs it. */
export function requireFirewalld(): void {
  within("Error retrieving dbus connection for requested firewall backend", requireBus);
}

/** firewalld then drops what other programs forward. Its own driver goes by firewalld itself. */
export function refuseIfStrict(): void {
  if (whyNotRunning() !== undefined) return;
  const value = firewalldProperty(STRICT);
  if (value === undefined) return;
  const said = String(value).toLowerCase();
  if (said === "yes") throw new Error(`Port forwarding not possible as firewalld ${STRICT} enabled`);
  if (said !== "no") {
    log("warn", "netavark::firewall::firewalld", `unexpected value from ${STRICT} property: ${said}`);
  }
}
