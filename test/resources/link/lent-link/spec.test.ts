/** By what a lent device is recognised: in the container, on the host, with a ledger and without. */
import { expect, test } from "bun:test";
import type { Link } from "../../../../src/ffi/netlink/route/link.ts";
import {
  asFound,
  type Device,
  hasSameHardware,
  isDevice,
  isLent,
  type LentLinkSpec,
} from "../../../../src/resources/link/lent-link/spec.ts";

const MAC = "02:00:00:00:00:01", PERMANENT = "52:54:00:00:00:01", OTHER = "02:00:00:00:00:02";
const found = {
  name: "eno1",
  index: 3,
  kind: undefined,
  mac: MAC,
  permanentMac: PERMANENT,
  mtu: 1500,
  alias: "",
  up: true,
  parent: "pci/devices/0000:00:01.0",
  flags: 0,
  txQueueLength: 1000,
  altNames: [],
};
const link = (change: Partial<Link> = {}) => ({ ...found, ...change }) as Link;
const device: Device = asFound(link());

test("of a link is recorded what it is recognised and restored by", () => {
  const { flags: _, txQueueLength: __, ...recorded } = found;
  const settings = { group: 0, txQueueLength: 1000, flags: 0, limits: {} };
  expect(device).toEqual({ ...recorded, settings });
  // Not whether it is up, nor what the kernel says of its own.
  const { settings: kept } = asFound(link({ flags: 0x1 | 0x40 | 0x80 | 0x1000, mode: 1, broadcast: OTHER }), [1]);
  expect(kept).toMatchObject({ flags: 0x80 | 0x1000, mode: 1, broadcast: OTHER });
  // What it is upon counts where the host has that.
  expect(asFound(link({ link: 7 }), [1]).hostLink).toBe(7);
  expect(asFound(link({ link: 7, linkNetnsId: 0 }), [1])).toMatchObject({ hostLink: undefined, features: [1] });
});

test("hardware is told by its kind and its permanent address, and a device without one by the address it had", () => {
  expect(hasSameHardware(link({ mac: OTHER, name: "x" }), device)).toBe(true);
  expect(hasSameHardware(link({ permanentMac: OTHER }), device)).toBe(false);
  expect(hasSameHardware(link({ kind: "dummy" }), device)).toBe(false);
  expect(isDevice(link({ mac: OTHER }), device)).toBe(true);
  const virtual = { ...device, permanentMac: undefined };
  expect(isDevice(link({ permanentMac: undefined }), virtual)).toBe(true);
  expect(isDevice(link({ permanentMac: undefined, mac: OTHER }), virtual)).toBe(false);
});

const owner = { network: "net", containerId: "c1", ifName: "eth0" };
const lent: LentLinkSpec = { owner, netnsPath: "/run/netns/c1", netns: "77", device, index: 9 };

test("with a ledger: hardware by its place on the bus, before Linux 5.14 by the index or the alias; never another one", () => {
  const placeless = { ...lent, device: { ...device, parent: undefined } };
  expect(isLent(link({ name: "x", index: 10, alias: "" }), lent)).toBe(true);
  expect(isLent(link({ parent: "pci/devices/0000:00:02.0", index: 10, alias: "" }), lent)).toBe(false);
  const inside = (change: Partial<Link>, spec: LentLinkSpec = placeless) =>
    isLent(link({ name: "eth0", index: 9, alias: "eno1", ...change }), spec);
  expect(inside({})).toBe(true);
  expect([inside({ alias: "spoilt" }), inside({ index: 10 }), inside({ index: 10, alias: "" })]).toEqual([
    true,
    true,
    false,
  ]);
  expect(inside({ permanentMac: OTHER })).toBe(false);
  // Without the cookie the index is of any namespace.
  const virtual = { ...lent, device: { ...device, permanentMac: undefined }, netns: undefined };
  const unmarked = { permanentMac: undefined, alias: "" };
  expect([inside(unmarked, virtual), inside({ ...unmarked, mac: OTHER }, virtual)]).toEqual([true, false]);
  expect(inside({ ...unmarked, mac: OTHER }, { ...virtual, netns: "77" })).toBe(true);
});

test("what software made, with the cookie known: by the link that it is upon, or by the index; never by the alias", () => {
  const virtual: LentLinkSpec = {
    ...lent,
    device: { ...device, kind: "veth", permanentMac: undefined, hostLink: 7 },
  };
  const inside = (change: Partial<Link>, spec = virtual) =>
    isLent(link({ kind: "veth", permanentMac: undefined, index: 9, alias: "eno1", ...change }), spec, () => 0);
  expect(inside({ link: 7, linkNetnsId: 0, index: 10, alias: "" })).toBe(true);
  expect([inside({ link: 7 }), inside({ link: 7, linkNetnsId: 1 }), inside({ link: 8, linkNetnsId: 0 })]).toEqual([
    false,
    false,
    false,
  ]);
  const alone = { ...virtual, device: { ...virtual.device!, hostLink: undefined } };
  expect([inside({ alias: "" }, alone), inside({ index: 10 }, alone)]).toEqual([true, false]);
});

test.each<[known: { name: string; mac: string }, inside: Partial<Link>, isOurs: boolean]>([
  [{ name: "eno1", mac: MAC }, { name: "eth0", alias: "eno1" }, true],
  [{ name: "eno1", mac: MAC }, { name: "eth0", alias: "" }, false],
  [{ name: "eno1", mac: MAC }, { name: "eth0", alias: undefined }, false],
  [{ name: "eno1", mac: OTHER }, { name: "eth0", alias: "eno1" }, true],
  [{ name: "eno1", mac: MAC }, { name: "eth0", alias: "x" }, true],
  [{ name: "eno1", mac: OTHER }, { name: "eth0", alias: "x" }, false],
  [{ name: "", mac: "" }, { name: "eth0", alias: "x" }, true],
  [{ name: "", mac: "" }, { name: "other", alias: "x" }, false],
  [{ name: "", mac: MAC }, { name: "other", alias: "x" }, true],
  [{ name: "", mac: OTHER }, { name: "other", alias: "x" }, false],
  [{ name: "eno1", mac: "" }, { name: "other", alias: "eno1" }, true],
  [{ name: "eno1", mac: MAC }, { name: "other", alias: "eno1" }, true],
  [{ name: "eno1", mac: OTHER }, { name: "other", alias: "eno1" }, false],
  [{ name: "eno1", mac: "" }, { name: "other", alias: "x" }, false],
])("without a ledger, %j known: %j is %p", (known, inside, isOurs) => {
  expect(isLent(link(inside), { owner, netnsPath: "", known })).toBe(isOurs);
});
