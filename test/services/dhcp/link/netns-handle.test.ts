/** Whether a namespace and its link are still those of the container, and that nothing stays open: kernels cannot be asked here. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import * as files from "../../../../src/ffi/files.ts";
import * as addresses from "../../../../src/ffi/netlink/route/address.ts";
import * as links from "../../../../src/ffi/netlink/route/link.ts";
import * as netlink from "../../../../src/ffi/netlink/socket.ts";
import * as netns from "../../../../src/ffi/netns.ts";
import {
  LinkGone,
  type LinkLocation,
  NetnsHandle,
  SharedHandle,
} from "../../../../src/services/dhcp/link/netns-handle.ts";

const NAMESPACE = 50, HOME = 60;
let closed: (string | number)[], opened: string[], link: { mac: string } | undefined, failure: Error | undefined;

beforeEach(() => {
  [closed, opened, link, failure] = [[], [], { mac: "02:00:00:00:00:07" }, undefined];
  const route = { fd: 70, close: () => void closed.push("route") };
  spyOn(netns, "openNetns").mockImplementation((path) => {
    if (failure !== undefined) throw failure;
    opened.push(path);
    return NAMESPACE;
  });
  spyOn(netns, "openOwnNetns").mockImplementation(() => HOME);
  spyOn(netns, "inNetns").mockImplementation((there, home, work) => {
    opened.push(`in ${there}, then in ${home}`);
    return work();
  });
  spyOn(netns, "netnsCookie").mockImplementation((fd) => fd === route.fd ? "cookie" : undefined);
  spyOn(netlink, "openNetlink").mockImplementation(() => route as never);
  spyOn(links, "getLink").mockImplementation((_, name) => name === "eth0" ? link as never : undefined);
  spyOn(files, "closeFile").mockImplementation((fd) => void closed.push(fd));
});
afterEach(() => mock.restore());

const at: LinkLocation = { netnsPath: "/run/netns/c1", ifName: "eth0" };

test("a handle works in the namespace, and comes back", () => {
  const handle = NetnsHandle.open({ ...at, cookie: "cookie", mac: "02:00:00:00:00:07" });
  expect([opened, handle.cookie, handle.link.mac]).toEqual([
    ["/run/netns/c1", "in 50, then in 60"],
    "cookie",
    "02:00:00:00:00:07",
  ]);
  expect([handle.inside(() => 5), opened.at(-1), closed]).toEqual([5, "in 50, then in 60", []]);
  handle.close();
  expect(closed).toEqual(["route", NAMESPACE]);
  // A descriptor that comes with the request goes before the path.
  NetnsHandle.open(at, 51);
  expect(opened.slice(3)).toEqual(["in 51, then in 60"]);
});

test("a look at the link's addresses has a socket of its own, which is closed", () => {
  const found = { bits: 24 } as never, isMeant = () => true;
  const look = spyOn(addresses, "firstAddress").mockImplementation(() => found);
  link = { ...link!, index: 7 } as never;
  const handle = NetnsHandle.open(at);
  expect(handle.address(2, isMeant)).toBe(found);
  expect([look.mock.calls[0]!.slice(1), opened.at(-1), closed]).toEqual([[7, 2, isMeant], "in 50, then in 60", [
    "route",
  ]]);
  look.mockImplementation(() => {
    throw new Error("out of memory");
  });
  expect(() => handle.address(2, isMeant)).toThrow("out of memory");
  expect(closed).toEqual(["route", "route"]);
});

test.each<[Partial<LinkLocation>, string]>([
  [{ cookie: "another" }, "the namespace at /run/netns/c1 is another one now"],
  [{ ifName: "eth1" }, `error looking up "eth1": Link not found`],
  [{ mac: "02:00:00:00:00:08" }, "eth0 has the hardware address 02:00:00:00:00:07 now, not 02:00:00:00:00:08"],
])("what is not as it was, %j, is gone, and nothing stays open", (change, text) => {
  expect(() => NetnsHandle.open({ ...at, ...change })).toThrow(new LinkGone(text));
  expect(closed).toEqual(["route", NAMESPACE]);
});

test("a namespace that cannot be opened is gone", () => {
  failure = new Error("no such file");
  expect(() => NetnsHandle.open(at)).toThrow(new LinkGone("no such file"));
  expect([closed, new SharedHandle(at).canBeOpened()]).toEqual([[], false]);
});

test("a shared handle is opened once, and closed with its last user", () => {
  const shared = new SharedHandle(at), [one, other] = [shared.open(), shared.open()];
  expect([one === other, opened.length]).toEqual([true, 2]);
  shared.close();
  expect([shared.canBeOpened(), closed]).toEqual([true, []]);
  shared.close();
  expect([closed.length, shared.open() === one, opened.length]).toEqual([2, false, 4]);
  shared.open();
  shared.closeForAll();
  expect(closed.length).toBe(4);
  shared.open();
  shared.close();
  expect([closed.length, shared.canBeOpened(), closed.length]).toEqual([6, true, 8]);
});

test("a handle that is given is the shared one; a look at it closes it", () => {
  const handle = NetnsHandle.open(at), shared = new SharedHandle(at, handle);
  expect([shared.open() === handle, opened.length]).toEqual([true, 2]);
  link = undefined;
  shared.close();
  expect(shared.canBeOpened()).toBe(false);
  spyOn(netlink, "openNetlink").mockImplementation(() => {
    throw new Error("too many open files");
  });
  expect(() => shared.canBeOpened()).toThrow("too many open files");
  expect(closed.at(-1)).toBe(NAMESPACE);
});
