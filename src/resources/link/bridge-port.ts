/**
 * The settings of one bridge port: hairpin mode, isolation, VLANs. They belong to the port's link, so DEL does nothing:
 * the kernel drops them with the link.
 */
import type { Host } from "../../contract/host.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import {
  addPortVlans,
  delPortVlans,
  listPortVlans,
  setBridgePort,
  type VlanRange,
} from "../../ffi/netlink/route/bridge.ts";
import { getLink, type Link, linkIndex } from "../../ffi/netlink/route/link.ts";

interface BridgePortSpec {
  ifName: string;
  hairpin: boolean;
  isolated: boolean;
  /** Undefined: the port keeps the VLANs the kernel gave it. */
  vlans?: VlanRange[];
  /** Keep the VLANs the kernel gave it, besides `vlans`. */
  keepDefaultVlan?: boolean;
}

export const bridgePortKind: ResourceKind<BridgePortSpec> = {
  kind: "bridge-port",
  unmade: undefined,
  apply({ ifName, hairpin, isolated, vlans, keepDefaultVlan }, host) {
    // A new port has hairpin mode and isolation off.
    if (!hairpin && !isolated && vlans === undefined) return;
    const port = { index: linkIndex(host.route, ifName)!, name: ifName };
    if (hairpin || isolated) setBridgePort(host.route, port, { hairpin, isolated });
    if (vlans === undefined) return;
    if (!keepDefaultVlan) delPortVlans(host.route, port, listPortVlans(host.route, port));
    addVlans(vlans, port, host);
  },
  repair({ ifName, hairpin, isolated, vlans }, host) {
    const port = getLink(host.route, ifName);
    if (port?.master === undefined) throw new Error(`${ifName} is not a bridge port`);
    setBridgePort(host.route, port, { hairpin, isolated });
    // Set all of them: a VLAN that is present may lack the flags for untagged frames.
    if (vlans !== undefined) addVlans(vlans, port, host);
  },
  remove: () => {},
  verify({ ifName, hairpin, isolated, vlans }, host) {
    // Not known, when others made the attachment and there is no prevResult.
    if (ifName === "") return [];
    const link = getLink(host.route, ifName);
    if (link === undefined) return [`bridge port ${ifName} is not there`];
    const differences: string[] = [];
    const compare = (what: string, wanted: boolean, current = false) => {
      if (wanted !== current) differences.push(`${what} of bridge port ${ifName} is ${current ? "on" : "off"}`);
    };
    compare("hairpin mode", hairpin, link.port?.hairpin);
    compare("isolation", isolated, link.port?.isolated);
    if (vlans !== undefined) {
      const present = listPortVlans(host.route, link);
      for (const { first, last, pvid } of vlans) {
        for (let vid = first; vid <= last; vid++) {
          const found = present.find((vlan) => vlan.first === vid);
          if (found === undefined) differences.push(`bridge port ${ifName} lacks VLAN ${vid}`);
          else if (pvid && !found.pvid) differences.push(`VLAN ${vid} of bridge port ${ifName} is not its PVID`);
        }
      }
    }
    return differences;
  },
  describe: ({ ifName }) => `settings of bridge port ${ifName}`,
};

export const bridgePort = resource(bridgePortKind);

/** Adds the PVID last: a range that includes it would clear its PVID flag. */
function addVlans(vlans: VlanRange[], port: Pick<Link, "index" | "name">, host: Host): void {
  addPortVlans(host.route, port, vlans.filter(({ pvid }) => !pvid));
  addPortVlans(host.route, port, vlans.filter(({ pvid }) => pvid));
}
