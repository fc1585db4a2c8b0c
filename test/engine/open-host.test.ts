/** The host that a verb works on: what is opened, what is refused, who waits for whom, and that everything is closed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import type { Container } from "../../src/contract/host.ts";
import {
  isOtherNamespace,
  type OpenHost,
  openHost,
  type OpenOptions,
  SameNetnsError,
} from "../../src/engine/open-host.ts";
import { listDirectory } from "../../src/ffi/files.ts";
import { getLink } from "../../src/ffi/netlink/route/link.ts";
import { netnsCookie } from "../../src/ffi/netns.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/host-`);
  process.env.PATCHBAY_STATE_DIR = `${directory}/state`;
});
afterEach(() => {
  delete process.env.PATCHBAY_STATE_DIR;
  rmSync(directory, { recursive: true });
});

const OWN = "/proc/self/ns/net";
const openFiles = () => listDirectory("/proc/self/fd").length;
function withHost<T>(netnsPath: string, options: OpenOptions, work: (host: OpenHost) => T): T {
  const host = openHost(netnsPath, options);
  try {
    return work(host);
  } finally {
    host.close();
  }
}

test("sockets are opened when they are first asked for, and are the same then", () => {
  withHost("", {}, (host) => {
    expect(host.container).toBeUndefined();
    expect(host.route).toBe(host.route);
    expect(getLink(host.route, "lo")?.index).toBe(1);
    expect(host.netfilter).toBe(host.netfilter);
    expect(host.netfilter.fd).not.toBe(host.route.fd);
    expect(host.cookie).toBe(netnsCookie(host.route.fd));
  });
});

describe("a namespace", () => {
  test("that is gone is an error, unless it may be", () => {
    writeFileSync(`${directory}/file`, "");
    for (const path of [`${directory}/none`, `${directory}/file`, `${directory}/file/x`]) {
      expect(() => openHost(path)).toThrow();
      expect(withHost(path, { mayBeGone: true }, ({ container }) => container)).toBeUndefined();
    }
    expect(() => openHost("/proc/self/ns/mnt", {})).toThrow("is not a network namespace");
  });

  test("of this process is refused, unless it is allowed", () => {
    for (const options of [{}, { mayBeGone: true }]) expect(() => openHost(OWN, options)).toThrow(SameNetnsError);
    withHost(OWN, { allowOwn: true }, ({ container }) => {
      expect(container!.netnsPath).toBe(OWN);
      expect(container!.alone(() => "alone")).toBe("alone");
      expect(statSync(`/proc/self/fd/${container!.netnsFd}`).ino).toBe(statSync(OWN).ino);
    });
  });

  test("leaves no file open, whatever happens", () => {
    const all = () => {
      for (const options of [{}, { allowOwn: true }]) {
        try {
          withHost(OWN, options, (host) => {
            expect(host.route.fd).toBeGreaterThan(0);
            host.useShared();
          });
        } catch (error) {
          expect(error).toBeInstanceOf(SameNetnsError);
        }
      }
    };
    all(); // Some sockets stay for the next one.
    const before = openFiles();
    for (let time = 0; time < 3; time++) all();
    expect(openFiles()).toBe(before);
  });
});

test("who is about to use what is shared holds off who would remove it, until it is released or closed", () => {
  withHost("", {}, (one) => {
    withHost("", {}, (two) => {
      const alone = () => withHost("", {}, (third) => third.isAloneWithShared());
      expect(alone()).toBe(true);
      one.useShared();
      two.useShared();
      expect([alone(), one.isAloneWithShared()]).toEqual([false, false]);
      one.release();
      expect(two.isAloneWithShared()).toBe(true);
      expect(alone()).toBe(false);
      two.release();
      expect(alone()).toBe(true);
      one.waitUntilAlone();
      expect(alone()).toBe(false);
      one.close();
      expect(alone()).toBe(true);
      expect(statSync(`${directory}/state`).mode & 0o777).toBe(0o700);
    });
  });
});

test("a namespace is another one where both are known and differ", () => {
  const is = (own: string | undefined, recorded: string | undefined) =>
    isOtherNamespace({ container: { cookie: own } as Container } as OpenHost, recorded);
  expect([is("1", "1"), is("1", "2"), is("1", undefined)]).toEqual([false, true, false]);
  expect(isOtherNamespace({ container: undefined } as OpenHost, "1")).toBe(false);
});
