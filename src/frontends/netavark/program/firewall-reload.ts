/** `netavark firewall-reload` and `firewalld-reload`: services that restore rules which others have flushed. */
import { errorText } from "../../../cni/error.ts";
import { endCall } from "../../../process/calls.ts";
import { openNetfilterEvents, untilQuiet } from "../../../ffi/netlink/events.ts";
import { reloadFirewall } from "../firewall/reload.ts";
import { log } from "../../../resources/netavark/shared/log.ts";
import type { NetavarkCall } from "./call.ts";

/** Restores the rules once: for a service that runs after the one that flushes them. */
export function firewallReload({ options }: NetavarkCall): undefined {
  reloadFirewall(options.configDirectory);
  log("info", "netavark::commands::firewall_reload", "Successfully reloaded firewall rules");
}

/** Restores them whenever somebody changes the host's rules, as firewalld does when it is reloaded. Never returns. */
export function firewalldReload({ options }: NetavarkCall): undefined {
  const events = openNetfilterEvents();
  for (;;) {
    try {
      reloadFirewall(options.configDirectory);
    } catch (error) {
      log("error", "netavark::commands::firewalld_reload", `failed to reload firewall rules: ${errorText(error)}`);
    }
    untilQuiet(events);
    // firewalld may have started or stopped meanwhile.
    endCall();
  }
}
