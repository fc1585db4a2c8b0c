/** Links on the wire: how they are made, changed and asked for, and what the kernel's description of one means. */
import { describe, expect, test } from "bun:test";
import { EEXIST, EINVAL, ENODEV, EOPNOTSUPP, EPERM } from "../../../../src/ffi/errno.ts";
import { farEnd } from "../../../../src/ffi/netlink/route/far-end.ts";
import { bridgeKind, ifbKind } from "../../../../src/ffi/netlink/route/link-kinds.ts";
import { knowsVlanFiltering } from "../../../../src/ffi/netlink/route/bridge.ts";
import {
  addLink,
  delLink,
  getLink,
  knowsLinkKind,
  type Link,
  linkIndex,
  listLinks,
  setLink,
} from "../../../../src/ffi/netlink/route/link.ts";
import { decodeLink } from "../../../../src/ffi/netlink/route/link-reading.ts";
import { RTM_NEWLINK } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { answering, type Body, bodyOf, bytesBy, refusing, sentAs, sentBy, socketTo } from "../fake-kernel.ts";

const HEADER = 16; // struct ifinfomsg
const NOTHING = "00000000 00000000 00000000 00000000";
const eth0 = "6574683000";
const link7 = { index: 7, name: "eth0" };

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

describe("making", () => {
  test("a link is made with all that is said of it, exclusively", () => {
    const all = {
      ifName: "eth0",
      kind: { name: "dummy" },
      address: Uint8Array.of(2, 0, 0, 0, 0, 1),
      mtu: 1400,
      link: 3,
      master: 4,
      txQueueLength: 1000,
      netnsFd: 5,
      up: true,
    };
    expect(sent((socket) => addLink(socket, all))).toEqual([
      "type 16, flags 0x605", // RTM_NEWLINK: a request with an ACK, create, exclusively
      "00000000 00000000 01000000 01000000", // IFF_UP, and that this one changes
      `3: ${eth0}`,
      "1: 020000000001",
      "4: 78050000",
      "5: 03000000",
      "10: 04000000",
      "13: e8030000",
      "28: 05000000",
      "18.1: 64756d6d7900",
    ]);
    expect(sent((socket) => addLink(socket, { ifName: "eth0", kind: ifbKind }))[1]).toBe(NOTHING);
  });

  test("a name that the kernel would fill in is refused", () => {
    expect(() => addLink(socketTo(answering(0)), { ifName: "eth%d", kind: ifbKind })).toThrow(
      "RTM_NEWLINK eth%d: invalid argument (the kernel would put a number for %d)",
    );
  });

  test("a kind that the kernel knows is one for which it rejects the name", () => {
    expect(knowsLinkKind(socketTo(refusing(EINVAL)), "vrf")).toBe(true);
    expect(knowsLinkKind(socketTo(refusing(EOPNOTSUPP)), "vrf")).toBe(false);
    expect(() => knowsLinkKind(socketTo(refusing(EPERM)), "vrf")).toThrow("RTM_NEWLINK /: operation not permitted");
    expect(() => knowsLinkKind(socketTo(answering(0)), "vrf")).toThrow("the kernel made a link named /");
  });

  test("a kernel filters VLANs that judges a VLAN before it finds the link", () => {
    const known = [EINVAL, EEXIST, EOPNOTSUPP].map((errno) => knowsVlanFiltering(socketTo(refusing(errno))));
    expect(known).toEqual([true, false, true]);
  });
});

describe("changing", () => {
  test("what is said is sent, with the flags that are to change", () => {
    expect(sent((socket) => setLink(socket, link7, { mtu: 1400 }))).toEqual([
      "type 16, flags 0x5",
      "00000000 07000000 00000000 00000000",
      "4: 78050000",
    ]);
    const flags = (change: Parameters<typeof setLink>[2]) =>
      sent((socket) => setLink(socket, link7, change))[1]!.slice(18);
    expect(flags({ up: true })).toBe("01000000 01000000");
    expect(flags({ up: false })).toBe("00000000 01000000");
    expect(flags({ promiscuous: true })).toBe("00010000 00010000");
    expect(flags({ promiscuous: false })).toBe("00000000 00010000");
    expect(flags({ allMulticast: true })).toBe("00020000 00020000");
    expect(flags({ allMulticast: false })).toBe("00000000 00020000");
    expect(flags({ allMulticast: false, up: true })).toBe("01000000 01020000");
    expect(flags({ up: true, promiscuous: true, allMulticast: true })).toBe("01030000 01030000");
  });

  test("a link may get another name, alias and index, and go to another namespace", () => {
    const change = { ifName: "eth0", alias: "eth0", newIndex: 9, netnsFd: 5, kind: bridgeKind({ vlanFiltering: 1 }) };
    expect(sent((socket) => setLink(socket, link7, change)).slice(2)).toEqual([
      `3: ${eth0}`,
      "28: 05000000",
      "49: 09000000",
      `20: ${eth0}`,
      "18.1: 62726964676500",
      "18.2.7: 01",
    ]);
    expect(() => setLink(socketTo(refusing(EEXIST)), link7, change)).toThrow("RTM_NEWLINK eth0: file exists");
  });

  test("a link is deleted by its name; that it is not there is no failure", () => {
    expect(sent((socket) => delLink(socket, "eth0"))).toEqual(["type 17, flags 0x5", NOTHING, `3: ${eth0}`]);
    expect(delLink(socketTo(answering(0)), "eth0")).toBe("deleted");
    expect(delLink(socketTo(refusing(ENODEV)), "eth0")).toBe("absent");
    expect(() => delLink(socketTo(refusing(EPERM)), "eth0")).toThrow("RTM_DELLINK eth0: operation not permitted");
  });
});

/** The kernel's RTM_NEWLINK of a port of a bridge; nests are not marked as such in answers. */
const port: Body = bodyOf("00000100 07000000 43100000 00000000", {
  3: eth0,
  1: "020000000001",
  4: "78050000",
  13: "e8030000",
  5: "08000000",
  37: "00000000",
  10: "04000000",
  16: "06",
  30: "02000000",
  20: "616c69617300",
  54: "0200000000aa",
  52: "0800350061620000" + "07003500e96300",
  56: "303030303a30303a30332e3000",
  57: "70636900",
  27: "07000000",
  41: "00000100",
  40: "ffff0000",
  58: "00000200",
  63: "00000300",
  64: "00000400",
  67: "01",
  18: "090001007665746800000000" + "0500020033000000" + "0b00040062726964676500" + "00" +
    "1c000500" + "05000100" + "03000000" + "05000400" + "01000000" + "05002100" + "01000000",
});
const plain: Body = bodyOf("00000100 03000000 42100000 00000000");

const read = (body: Body) => decodeLink(bytesBy(body));

describe("reading", () => {
  test("a link is what its attributes say", () => {
    expect(read(port)).toEqual({
      index: 7,
      name: "eth0",
      flags: 0x1043,
      up: true,
      hasCarrier: false,
      mac: "02:00:00:00:00:01",
      mtu: 1400,
      txQueueLength: 1000,
      master: 4,
      link: 8,
      linkNetnsId: 0,
      operstate: 6,
      promiscuity: 2,
      alias: "alias",
      altNames: ["ab", "\xe9c"],
      permanentMac: "02:00:00:00:00:aa",
      parent: "pci/devices/0000:00:03.0",
      isImmovable: true,
      kind: "veth",
      kindData: Uint8Array.of(0x33),
      vlanFiltering: false,
      group: 7,
      limits: {
        gsoMaxSize: 0x10000,
        gsoMaxSegments: 0xffff,
        groMaxSize: 0x20000,
        gsoIpv4MaxSize: 0x30000,
        groIpv4MaxSize: 0x40000,
      },
      port: { hairpin: true, isolated: true, learning: true, state: 3 },
    });
  });

  test("without them it has no name, no address and no kind", () => {
    const { port, ...link } = read(plain);
    expect(link).toMatchObject({
      index: 3,
      name: "",
      up: false,
      mac: "",
      mtu: 0,
      txQueueLength: 0,
      operstate: 0,
      promiscuity: 0,
      altNames: [],
      vlanFiltering: false,
    });
    expect([port, link.kind, link.parent, link.permanentMac, link.isImmovable]).toEqual(Array(5).fill(undefined));
    expect(read(bodyOf("00000100 03000000 42100000 00000000", { 67: "00" })).isImmovable).toBe(false);
  });

  test("a bridge's settings are decoded; ports of others are none of a bridge", () => {
    const withInfo = (info: string) => read(bodyOf("00000100 03000000 00000000 00000000", { 18: info }));
    const bridge = "0b0001006272696467650000";
    expect(withInfo(`${bridge}0c0002000500070001000000`)).toMatchObject({
      kind: "bridge",
      kindData: undefined,
      vlanFiltering: true,
    });
    expect(withInfo(`${bridge}0c0002000500070000000000`).vlanFiltering).toBe(false);
    expect(withInfo(bridge).vlanFiltering).toBe(false);
    expect(withInfo("0900010076657468000000000c0002000500070001000000").vlanFiltering).toBe(false);
    const slaveData = "0c0005000500040001000000";
    expect(withInfo(`0b000400627269646765000${"0"}${slaveData}`).port).toEqual({
      hairpin: true,
      isolated: false,
      learning: true,
      state: 0,
    });
    expect(withInfo(`08000400767266${"00"}${slaveData}`).port).toBeUndefined();
    expect(withInfo("0b0004006272696467650000").port).toBeUndefined();
  });
});

describe("asking", () => {
  test("by name, by a longer alternative name, and by index, without statistics", () => {
    const question = (which: string | number) => {
      const kernel = answering(RTM_NEWLINK, port);
      expect(getLink(socketTo(kernel), which)!.index).toBe(7);
      return sentAs(kernel, HEADER);
    };
    const skip = "29: 08000000"; // RTEXT_FILTER_SKIP_STATS
    expect(question("eth0")).toEqual(["type 18, flags 0x5", NOTHING, `3: ${eth0}`, skip]);
    expect(question("a".repeat(15))).toContain(`3: ${"61".repeat(15)}00`);
    expect(question("a".repeat(16))).toEqual(["type 18, flags 0x5", NOTHING, skip, `53: ${"61".repeat(16)}00`]);
    expect(question(7)).toEqual(["type 18, flags 0x5", "00000000 07000000 00000000 00000000", skip]);
  });

  test("there is none where the kernel has none; another failure is one", () => {
    expect(getLink(socketTo(refusing(ENODEV)), "eth0")).toBeUndefined();
    expect(() => getLink(socketTo(refusing(EPERM)), "eth0")).toThrow("RTM_GETLINK eth0: operation not permitted");
    expect(getLink(socketTo(answering(RTM_NEWLINK + 1, port)), "eth0")).toBeUndefined();
  });

  test("an alternative name has an index, too", () => {
    expect(linkIndex(socketTo(answering(RTM_NEWLINK, port)), "a".repeat(16))).toBe(7);
    expect(linkIndex(socketTo(refusing(ENODEV)), "a".repeat(16))).toBeUndefined();
    // By ioctl, of which the fake one knows nothing.
    expect(() => linkIndex(socketTo(answering(RTM_NEWLINK, port)), "a".repeat(15))).toThrow(
      `ioctl SIOCGIF ${"a".repeat(15)}: bad file descriptor`,
    );
  });

  test("all links, or the ports of one bridge", () => {
    const kernel = answering(RTM_NEWLINK, port, plain);
    expect(listLinks(socketTo(kernel)).map(({ index }) => index)).toEqual([7, 3]);
    expect(sentAs(kernel, HEADER)).toEqual(["type 18, flags 0x301", NOTHING, "29: 08000000"]);
    listLinks(socketTo(kernel), { master: 4 });
    expect(sentAs(kernel, HEADER).slice(2)).toEqual(["10: 04000000", "29: 08000000"]);
    expect(listLinks(socketTo(answering(RTM_NEWLINK + 1, port)))).toEqual([]);
  });
});

describe("the far end", () => {
  const near = { link: 8, linkNetnsId: 0 } as Link;

  test("is asked for by its index in its namespace", () => {
    const kernel = answering(RTM_NEWLINK, port);
    expect(farEnd(socketTo(kernel), near)).toEqual({ mac: "02:00:00:00:00:01" });
    expect(sentAs(kernel, HEADER)).toEqual([
      "type 18, flags 0x5",
      "00000000 08000000 00000000 00000000",
      "29: 08000000",
      "46: 00000000",
    ]);
    expect(farEnd(socketTo(answering(RTM_NEWLINK, plain)), near)).toEqual({ mac: "" });
    expect(farEnd(socketTo(answering(RTM_NEWLINK + 1, port)), near)).toEqual({ mac: "" });
  });

  test("is none where there is no other namespace, or none any more", () => {
    const never = socketTo(refusing(EEXIST));
    expect(farEnd(never, { ...near, link: undefined })).toBeUndefined();
    expect(farEnd(never, { ...near, linkNetnsId: undefined })).toBeUndefined();
    for (const errno of [EINVAL, ENODEV]) expect(farEnd(socketTo(refusing(errno)), near)).toBeUndefined();
    for (const errno of [EPERM, 13]) expect(farEnd(socketTo(refusing(errno)), near)).toEqual({ mac: "" });
    expect(() => farEnd(never, near)).toThrow("RTM_GETLINK 8 in namespace 0: file exists");
  });
});
