/** Where a database listens, in the words of Open vSwitch's programs. */
import { expect, test } from "bun:test";
import { parseServer } from "../../../src/interop/ovsdb/server-address.ts";

const v4 = Uint8Array.of(192, 0, 2, 1), v6 = new Uint8Array(16).fill(1, 15);

test.each<[string, unknown]>([
  ["unix:/run/db.sock", { path: "/run/db.sock" }],
  ["/run/db.sock", { path: "/run/db.sock" }],
  ["tcp:192.0.2.1:6641", { address: v4, port: 6641 }],
  ["tcp:192.0.2.1", { address: v4, port: 6640 }],
  ["tcp:[::1]:6641", { address: v6, port: 6641 }],
  ["tcp:192.0.2.1:0", undefined],
  ["tcp:192.0.2.1:65536", undefined],
  ["tcp:host:6640", undefined],
  ["ssl:192.0.2.1:6640", undefined],
  ["unix:db.sock", undefined],
  ["unix:/run/a\0b", undefined],
  ["", undefined],
])("%j", (text, wanted) => {
  expect(parseServer(text)).toEqual(wanted as never);
});
