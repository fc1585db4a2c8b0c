/** Chooses the firewall that `setup` and `teardown` write to. */
import type { NetavarkConf } from "../../../interop/podman-documents/netavark.schema.ts";
import { log } from "../../../resources/netavark/shared/log.ts";

type FirewallDriver = NetavarkConf["firewall"];

const lines: Readonly<Record<FirewallDriver, string>> = {
  nftables: "Using nftables firewall driver",
  firewalld: "Using firewalld firewall driver",
  none: "Not using firewall",
};

/** Never chooses firewalld by itself. Logs the choice. */
export function chooseFirewall(wanted: string | undefined): FirewallDriver {
  const asked = wanted?.toLowerCase() ?? "nftables";
  // podman 4 and 5 may ask for it. netavark 2 has no such driver any more, and rules of both kinds work together.
  const name = asked === "iptables" ? "nftables" : asked;
  if (!Object.hasOwn(lines, name)) {
    throw new Error(
      `Must provide a valid firewall backend, got ${wanted}; there are ${Object.keys(lines).join(", ")}`,
    );
  }
  log("info", "netavark::firewall", lines[name as FirewallDriver]);
  return name as FirewallDriver;
}
