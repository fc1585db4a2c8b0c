/** Whether firewalld lets other programs forward ports. */
import { firewalldProperty, whyNotRunning } from "../../../interop/firewalld/client.ts";
import { log } from "./log.ts";

const STRICT = "StrictForwardPorts";

/** With strict forwarding firewalld drops what other programs forward. Not for the driver `firewalld`. */
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
