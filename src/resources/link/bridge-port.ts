/**
 * The settings of one bridge port: hairpin mode, isolation, VLANs, the one address behind it. They belong to the port's link, so DEL does nothing:
 * the kernel drops them with the link.
 */
import type { Host } from "../../contract/host.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import {
  addPortVlans,
  delPortVlans,
  listPortVlans,
  setBridgePort,
  setPortsEntry,
  type VlanRange,
} from "../../ffi/netlink/route/bridge.ts";
import { getLink, type Link, linkIndex } from "../../ffi/netlink/route/link.ts";
import { parseMac } from "../../net/mac.ts";
import { sayingWhatIsLacking } from "./shared/vlan-filtering.ts";

interface BridgePortSpec {
  ifName: string;
  hairpin: boolean;
  isolated: boolean;
  /**
   * With `macspoofchk`, the container's address: the bridge learns no others there. It would from frames to
   * 01:80:c2:00:00:0x, which it takes before rules of its family see them.
   */
  mac?: string;
  /** Undefined: the port keeps the VLANs the kernel gave it. */
  vlans?: VlanRange[];
  /** Keep the VLANs the kernel gave it, besides `vlans`. */
  keepDefaultVlan?: boolean;
}

export const bridgePortKind: ResourceKind<BridgePortSpec> = {
  kind: "bridge-port",
  confines: true,
  apply({ ifName, hairpin, isolated, mac, vlans, keepDefaultVlan }, host) {
    // A new port has hairpin mode and isolation off, and learns.
    if (!hairpin && !isolated && mac === undefined && vlans === undefined) return;
    const port = { index: linkIndex(host.route, ifName)!, name: ifName };
    const learning = learningWith(mac);
    if (hairpin || isolated || mac !== undefined) setBridgePort(host.route, port, { hairpin, isolated, learning });
    if (vlans !== undefined) {
      sayingWhatIsLacking(() => {
        if (!keepDefaultVlan) delPortVlans(host.route, port, listPortVlans(host.route, port));
        addVlans(vlans, port, host);
      });
    }
    // After the VLANs: the entry is made in each.
    if (mac !== undefined) setPortsEntry(host.route, port, parseMac(mac)!);
  },
  repair({ ifName, hairpin, isolated, mac, vlans }, host) {
    const port = getLink(host.route, ifName);
    if (port?.master === undefined) throw new Error(`${ifName} is not a bridge port`);
    setBridgePort(host.route, port, { hairpin, isolated, learning: learningWith(mac) });
    // Set all of them: a VLAN that is present may lack the flags for untagged frames.
    if (vlans !== undefined) addVlans(vlans, port, host);
    if (mac !== undefined) setPortsEntry(host.route, port, parseMac(mac)!);
  },
  remove: () => {},
  verify({ ifName, hairpin, isolated, mac, vlans }, host, isRestated) {
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
    // The reference plugin's port learns.
    if (mac !== undefined && !isRestated) compare("learning", false, link.port?.learning);
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

/** Undefined leaves the port as it is. */
function learningWith(mac: string | undefined): false | undefined {
  return mac === undefined ? undefined : false;
}

/** Adds the PVID last: a range that includes it would clear its PVID flag. */
function addVlans(vlans: VlanRange[], port: Pick<Link, "index" | "name">, host: Host): void {
  addPortVlans(host.route, port, vlans.filter(({ pvid }) => !pvid));
  addPortVlans(host.route, port, vlans.filter(({ pvid }) => pvid));
}
