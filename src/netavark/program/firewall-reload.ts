/** `netavark firewall-reload` and `firewalld-reload`: services that write rules again which others have flushed. */
import { errorText } from "../../cni/error.ts";
import { endCall } from "../../ffi/calls.ts";
import { openNetfilterEvents, untilQuiet } from "../../ffi/netlink/events.ts";
import { reloadFirewall } from "../firewall/reload.ts";
import { log } from "../../resources/netavark/shared/log.ts";
import type { Call } from "./call.ts";

/** Once, for a service that runs after the one that flushes them. */
export function firewallReload({ surroundings }: Call): undefined {
  reloadFirewall(surroundings.configDirectory);
  log("info", "netavark::commands::firewall_reload", "Successfully reloaded firewall rules");
}

/** Whenever somebody has changed the host's rules, until it is killed. firewalld does so when it is reloaded. */
export function firewalldReload({ surroundings }: Call): undefined {
  const events = openNetfilterEvents();
  for (;;) {
    try {
      reloadFirewall(surroundings.configDirectory);
    } catch (error) {
      log("error", "netavark::commands::firewalld_reload", `failed to reload firewall rules: ${errorText(error)}`);
    }
    untilQuiet(events);
    // Whether firewalld runs is asked anew.
    endCall();
  }
}
