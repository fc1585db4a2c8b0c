/** The settings of each kind of link, as the kernel gets them and tells them. */
import { expect, test } from "bun:test";
import {
  bridgeKind,
  dummy,
  ipvlan,
  type LinkFormat,
  type LinkKind,
  macvlan,
  tunSettings,
  vethKind,
  vlan,
  vrf,
} from "../../../../src/ffi/netlink/route/link-kinds.ts";
import { addLink } from "../../../../src/ffi/netlink/route/link.ts";
import { answering, bodyOf, bytesBy, sentAs, socketTo } from "../fake-kernel.ts";

/** IFLA_LINKINFO of a new link. */
function infoOf(kind: LinkKind): string[] {
  const kernel = answering(0);
  addLink(socketTo(kernel), { ifName: "eth0", kind });
  return sentAs(kernel, 16).slice(3);
}

const dataOf = (attributes: Record<number, string>) => bytesBy(bodyOf("", attributes));

test("a veth has its other end, which is a link in itself", () => {
  const peer = { ifName: "eth0", address: Uint8Array.of(2, 0, 0, 0, 0, 2), mtu: 9, txQueueLength: 8, netnsFd: 5 };
  const [name, data] = infoOf(vethKind({ peer }));
  expect(name).toBe("18.1: 7665746800");
  expect(data).toBe(
    "18.2.1: " + "00".repeat(16) + "0900030065746830" + "00000000" + "0a00010002000000" + "00020000" +
      "0800040009000000" + "08000d0008000000" + "08001c0005000000",
  );
});

test("a bridge", () => {
  expect(infoOf(bridgeKind({ vlanFiltering: 1, priority: 0x8001 }))).toEqual([
    "18.1: 62726964676500",
    "18.2.6: 0180",
    "18.2.7: 01",
  ]);
});

function isTold<Settings>(name: string, format: LinkFormat<Settings>, settings: Settings, ...lines: string[]): void {
  const [kind, ...data] = infoOf(format.kind(settings));
  expect(kind).toBe(`18.1: ${Buffer.from(`${name}\0`).toString("hex")}`);
  expect(data).toEqual(lines);
  const told = Object.fromEntries(lines.map((line) => line.replace("18.2.", "").split(": ")));
  expect(format.settings(dataOf(told))).toEqual(settings);
}

test("a macvlan", () => {
  isTold("macvlan", macvlan, { mode: "bridge" }, "18.2.1: 04000000");
  const queue = ["18.2.7: 03000000", "18.2.9: ffffffff"];
  isTold("macvlan", macvlan, { mode: "source", bcqueuelen: 3, bccutoff: -1 }, "18.2.1: 10000000", ...queue);
});

test("an ipvlan, neither private nor vepa", () => {
  isTold("ipvlan", ipvlan, { mode: "l2" }, "18.2.1: 0000", "18.2.2: 0000");
  isTold("ipvlan", ipvlan, { mode: "l3" }, "18.2.1: 0100", "18.2.2: 0000");
  isTold("ipvlan", ipvlan, { mode: "l3s" }, "18.2.1: 0200", "18.2.2: 0000");
});

test("a vlan, a vrf and a dummy", () => {
  isTold("vlan", vlan, { id: 4000 }, "18.2.1: a00f");
  isTold("vrf", vrf, { table: 1000 }, "18.2.1: e8030000");
  isTold("dummy", dummy, {});
});

test("a tap's owner and queues are read", () => {
  expect(tunSettings(dataOf({ 1: "e8030000", 2: "e9030000", 7: "01" }))).toEqual({
    owner: 1000,
    group: 1001,
    multiQueue: true,
  });
  expect(tunSettings(dataOf({ 7: "00" })).multiQueue).toBe(false);
});
