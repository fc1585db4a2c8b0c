/** Which firewall `setup`, `teardown` and the reloads write to. */
import type { FirewallDriver } from "../drivers/driver.ts";
import { log } from "../../resources/netavark/shared/log.ts";

const lines: Readonly<Record<FirewallDriver, string>> = {
  nftables: "Using nftables firewall driver",
  firewalld: "Using firewalld firewall driver",
  none: "Not using firewall",
};

/** Never firewalld, unless it was asked for. Says the choice in the log. */
export function chooseFirewall(wanted: string | undefined): FirewallDriver {
  const asked = wanted?.toLowerCase() ?? "nftables";
  // podman 4 and 5 may ask for it. netavark 2 has no such driver any more, and rules of both kinds go together.
  const name = asked === "iptables" ? "nftables" : asked;
  if (!Object.hasOwn(lines, name)) {
    throw new Error(
      `Must provide a valid firewall backend, got ${wanted}; there are ${Object.keys(lines).join(", ")}`,
    );
  }
  log("info", "netavark::firewall", lines[name as FirewallDriver]);
  return name as FirewallDriver;
}
