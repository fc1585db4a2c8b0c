/**
 * Run in a network namespace of its own, with the path of another: does what `ip` does through every verb there is, and
 * prints what came of it as one JSON document.
 */
import { NETLINK_ROUTE, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { addAddress, delAddress, listAddresses } from "../../../src/ffi/netlink/route/address.ts";
import {
  addLink,
  delLink,
  getLink,
  linkIndex,
  linkMac,
  listLinks,
  setLink,
} from "../../../src/ffi/netlink/route/link.ts";
import { bridgeKind, vethKind } from "../../../src/ffi/netlink/route/link-kinds.ts";
import { hasPorts, setBridgePort } from "../../../src/ffi/netlink/route/bridge.ts";
import { removeLink } from "../../../src/ffi/netlink/route/remove-link.ts";
import { addRoute, delRoute, listRoutes } from "../../../src/ffi/netlink/route/route.ts";
import { addRoutingRule, delRoutingRule, listRoutingRules, sourceRule } from "../../../src/ffi/netlink/route/rule.ts";
import { bind, libc } from "../../../src/ffi/libc.ts";
import { inNetns, openNetns, openOwnNetns } from "../../../src/ffi/netns.ts";
import { formatPrefix, parsePrefix } from "../../../src/net/address.ts";

const host = openNetlink(NETLINK_ROUTE);
const mac = (last: number) => new Uint8Array([2, 0, 0, 0, 0, last]);
const told = (work: () => void) => {
  try {
    work();
    return "no error";
  } catch (error) {
    return (error as Error).message;
  }
};
const report: Record<string, unknown> = { opened: host.opened };

const ifName = "bridge-of-15-ch"; // no name is longer
addLink(host, { ifName, kind: bridgeKind({}), address: mac(1), mtu: 1400, up: true });
const bridge = getLink(host, ifName)!;
report.bridge = { kind: bridge.kind, mac: bridge.mac, mtu: bridge.mtu, up: bridge.up };
report.byIoctl = [linkIndex(host, ifName) === bridge.index, linkMac(host, ifName), linkMac(host, "nope") ?? null];
const hadPorts = hasPorts(host, bridge);

const home = openOwnNetns(), other = openNetns(process.argv[2]!);
const peer = { ifName: "eth0", netnsFd: other, address: mac(2) };
addLink(host, { ifName: "vh", kind: vethKind({ peer }), master: bridge.index, up: true });
const hostEnd = getLink(host, "vh")!;
setBridgePort(host, hostEnd, { hairpin: true, isolated: true, learning: false });
report.port = { ...getLink(host, "vh")!.port, onBridge: hostEnd.master === bridge.index };
report.hasPorts = [hadPorts, hasPorts(host, bridge)];
report.ports = listLinks(host, { master: bridge.index }).map(({ name }) => name);

const inside = inNetns(other, home, () => openNetlink(NETLINK_ROUTE));
const eth0 = getLink(inside, "eth0")!;
report.inside = { mac: eth0.mac, index: linkIndex(inside, "eth0") === eth0.index, up: eth0.up };
const v4 = parsePrefix("10.1.2.3/24")!, v6 = parsePrefix("fd00::2/64")!;
report.added = [
  addAddress(inside, eth0.index, v4),
  addAddress(inside, eth0.index, v4),
  addAddress(inside, eth0.index, v6, { skipDad: true }),
];
setLink(inside, eth0, { up: true });
report.addresses = listAddresses(inside, eth0.index).map(formatPrefix).filter((text) => !text.startsWith("fe80"));
report.tentative = listAddresses(inside, eth0.index).some((a) => a.tentative && formatPrefix(a) === "fd00::2/64");

const anywhere = { dst: parsePrefix("0.0.0.0/0")!, oif: eth0.index, gateway: parsePrefix("10.1.2.1/24")!.bytes };
addRoute(inside, { ...anywhere, mtu: 1300, priority: 7, table: 1000 });
report.routes = listRoutes(inside, 2, 1000).map(({ dst, gateway, priority, mtu }) => ({
  dst: formatPrefix(dst),
  gateway: gateway?.join("."),
  priority,
  mtu,
}));
report.routeGone = [
  delRoute(inside, { ...anywhere, priority: 7, table: 1000 }),
  delRoute(inside, { ...anywhere, table: 1000 }),
];

const rule = sourceRule(parsePrefix("10.1.2.3/32")!, 1000);
addRoutingRule(inside, rule);
const listed = listRoutingRules(inside, 2).filter(({ table }) => table === 1000);
report.rule = listed.map(({ source }) => formatPrefix(source!));
report.ruleGone = [listed[0]!, listed[0]!].map((rule) => delRoutingRule(inside, rule));

report.addressGone = [delAddress(inside, eth0.index, v4), delAddress(inside, eth0.index, v4)];

report.errors = [
  told(() => addLink(host, { ifName: "vh", kind: bridgeKind({}) })),
  told(() => addLink(host, { ifName: "x", kind: { name: "nonesuch" } })),
  told(() => addLink(host, { ifName: "x", kind: bridgeKind({}), mtu: 1 })),
  told(() => addRoute(inside, { dst: parsePrefix("10.0.0.1/8")!, oif: eth0.index })),
];
report.absent = [getLink(host, "nope") ?? null, linkIndex(host, "nope") ?? null, delLink(host, "nope")];

// Somebody with a socket in the namespace forges answers: same sequence number, "no such device".
const forger = libc.socket(16, 3, 0);
const forged = new Uint8Array(36);
const forgedView = new DataView(forged.buffer);
forgedView.setUint32(0, 36, true);
forgedView.setUint16(4, 2, true);
forgedView.setInt32(16, -19, true);
const ours = new Uint8Array(12), oursLength = new Uint8Array([12, 0, 0, 0]);
bind({ getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" } }).getsockname(host.fd, ours, oursLength);
const MSG_DONTWAIT = 0x40;
for (let sequence = 30; sequence < 70; sequence++) {
  forgedView.setUint32(8, sequence, true);
  libc.sendto(forger, forged, forged.length, MSG_DONTWAIT, ours, 12);
}
report.despiteForgery = getLink(host, "vh")?.name;

report.removed = [
  removeLink(inside, "eth0", (work) => inNetns(other, home, work)),
  removeLink(inside, "eth0", (work) => inNetns(other, home, work)),
  getLink(host, "vh") ?? null,
  delLink(host, ifName),
];
report.notRemoved = told(() => removeLink(host, "lo"));
console.log(JSON.stringify(report));
