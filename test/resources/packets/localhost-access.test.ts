/** Which published addresses 127.0.0.0/8 of the host reaches. tables.test.ts has what is made of it. */
import { expect, test } from "bun:test";
import { isForLocalhost } from "../../../src/resources/packets/localhost-access.ts";

test("a port of all addresses, or of one in 127.0.0.0/8", () => {
  expect([undefined, "0.0.0.0", "127.0.0.1", "127.9.9.9"].map((hostIp) => isForLocalhost({ hostIp })))
    .toEqual([true, true, true, true]);
  expect(
    ["128.0.0.1", "126.255.255.255", "::", "::1", "7f00::1", "192.0.2.127"].map((hostIp) =>
      isForLocalhost({ hostIp })
    ),
  )
    .toEqual([false, false, false, false, false, false]);
});
