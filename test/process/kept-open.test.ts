/** What a resident keeps: given back and taken again, unless it is stale; a process of one call keeps nothing. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { giveBackConnection, takeConnection, withOwnConnections } from "../../src/process/kept-open.ts";

const sources = resolve(import.meta.dir, "../../src");

/** In a process of its own, because what is kept stays with the process. */
function run(script: string): unknown {
  const begin = `
    import { readdirSync } from "node:fs";
    import { hostSockets, keepFromNowOn, keepNothingDuring, ownNetns } from "${sources}/process/kept-open.ts";
    import { linkIndex } from "${sources}/ffi/netlink/route/link.ts";
    import { libc } from "${sources}/ffi/libc.ts";
    const { route } = hostSockets;
    const open = () => readdirSync("/proc/self/fd").length;
  `;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", begin + script]);
  expect(stderr.toString()).toBe("");
  return JSON.parse(stdout.toString());
}

test("a socket is used again", () => {
  const script = `
    keepFromNowOn();
    const first = route.take();
    linkIndex(first, "lo");
    route.giveBack(first);
    const again = route.take();
    console.log(JSON.stringify([again === first, linkIndex(again, "lo")]));
  `;
  expect(run(script)).toEqual([true, 1]);
});

test("a socket with an answer that nobody read is closed, and another one opened", () => {
  const script = `
    keepFromNowOn();
    const first = route.take(), before = open();
    // struct nlmsghdr: RTM_GETLINK as a dump, with struct ifinfomsg.
    const request = new Uint8Array(32);
    new DataView(request.buffer).setUint32(0, 32, true);
    new DataView(request.buffer).setUint16(4, 18, true);
    new DataView(request.buffer).setUint16(6, 0x301, true);
    libc.sendto(first.fd, request, 32, 0, null, 0);
    route.giveBack(first);
    const again = route.take();
    console.log(JSON.stringify([again === first, open() - before, linkIndex(again, "lo")]));
  `;
  expect(run(script)).toEqual([false, 0, 1]);
});

test("two at a time are two, and one of them is kept", () => {
  const script = `
    keepFromNowOn();
    const before = open();
    const one = route.take(), other = route.take();
    route.giveBack(one);
    route.giveBack(other);
    ownNetns.giveBack(ownNetns.take());
    console.log(JSON.stringify([one === other, route.take() === one, open() - before]));
  `;
  expect(run(script)).toEqual([false, true, 2]);
});

test("what is kept is given out once", () => {
  const script = `
    keepFromNowOn();
    const first = route.take();
    route.giveBack(first);
    const one = route.take(), other = route.take();
    console.log(JSON.stringify([one === first, other === first]));
  `;
  expect(run(script)).toEqual([true, false]);
});

test("work in another host's namespace gets nothing that is kept, and leaves nothing", () => {
  const script = `
    keepFromNowOn();
    const first = route.take(), before = open();
    route.giveBack(first);
    const seen = [];
    keepNothingDuring(() => {
      const other = route.take();
      seen.push(other === first);
      route.giveBack(other);
    });
    console.log(JSON.stringify([...seen, route.take() === first, open() - before]));
  `;
  expect(run(script)).toEqual([false, true, 0]);
});

test("without keepFromNowOn() everything is closed", () => {
  const script = `
    const before = open();
    route.giveBack(route.take());
    ownNetns.giveBack(ownNetns.take());
    console.log(JSON.stringify(open() - before));
  `;
  expect(run(script)).toBe(0);
});

test("a connection is kept until its verb ends, whatever becomes of that, and a verb within another has its own", () => {
  const closed: string[] = [];
  const connection = (name: string) => ({ name, close: () => void closed.push(name) });
  const giveBack = (name: string) => giveBackConnection("server", connection(name));
  const taken = () => takeConnection<ReturnType<typeof connection>>("server")?.name;
  giveBack("outside");
  expect([closed.splice(0), taken()]).toEqual([["outside"], undefined]);
  const verb = () =>
    withOwnConnections(() => {
      giveBack("first");
      withOwnConnections(() => {
        expect(taken()).toBeUndefined();
        giveBack("inner");
      });
      expect(closed.splice(0)).toEqual(["inner"]);
      giveBack("second");
      expect([closed.splice(0), taken(), taken()]).toEqual([["second"], "first", undefined]);
      giveBack("third");
      throw new Error("not now");
    });
  expect(verb).toThrow("not now");
  expect([closed, taken()]).toEqual([["third"], undefined]);
});
