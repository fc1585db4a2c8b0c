/** What the kernel refuses of addresses and routes, in its own words. test/kernel/plan.test.ts has the kernel say the same. */
import { expect, test } from "bun:test";
import type { KernelRoute } from "../../../../src/ffi/netlink/route/route.ts";
import { parseAddress, parsePrefix } from "../../../../src/net/address.ts";
import { addressingKind } from "../../../../src/resources/address/addressing/addressing.ts";
import { refuseAddresses, refuseRoutes } from "../../../../src/resources/address/addressing/refused.ts";

function said(work: () => void): string {
  try {
    work();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

const added = (...addresses: string[]) =>
  said(() => refuseAddresses("eth0", addresses.map((text) => parsePrefix(text)!)));

test.each([
  [["10.1.0.2/24", "10.1.0.2/25", "10.1.0.3/24", "fd00::2/64"], ""],
  [["10.1.0.2/24", "10.1.0.3/24", "10.1.0.2/24"], 'failed to add IP addr 10.1.0.2/24 to "eth0": file exists'],
  [["fd00::2/64", "fd00::2/65"], 'failed to add IP addr fd00::2/65 to "eth0": file exists'],
  [["fd00::2/64", "fd00::3/64"], ""],
  [["::1/128"], 'failed to add IP addr ::1/128 to "eth0": cannot assign requested address'],
  [["ff02::1/64"], 'failed to add IP addr ff02::1/64 to "eth0": cannot assign requested address'],
  [["fe80::1/64", "127.0.0.2/8", "255.0.0.1/8", "::2/128"], ""],
])("addresses %j: %s", (addresses, reason) => expect(added(...addresses)).toBe(reason));

interface Told {
  dst: string;
  gw?: string;
  priority?: number;
  scope?: number;
}

function routed(routes: Told[], addresses = ["10.1.0.2/24", "fd00::2/64"]): string {
  const all = routes.map(({ dst, gw, priority, scope }): KernelRoute => ({
    dst: parsePrefix(dst)!,
    oif: 0,
    gateway: gw === undefined ? undefined : parseAddress(gw),
    priority,
    scope,
  }));
  return said(() => refuseRoutes("eth0", all, addresses.map((text) => parsePrefix(text)!)));
}

const ROUTE = "failed to add route '";
test.each<[Told[], string]>([
  [[{ dst: "0.0.0.0/0", gw: "10.1.0.1" }, { dst: "::/0", gw: "fd00::1" }], ""],
  [[{ dst: "192.0.2.1/24" }], `${ROUTE}192.0.2.1/24 dev eth0': invalid argument`],
  [[{ dst: "fd01::1/64" }], ""],
  [[{ dst: "0.0.0.0/0", gw: "fd00::1" }], `${ROUTE}0.0.0.0/0 via fd00::1 dev eth0': network is unreachable`],
  [[{ dst: "::/0", gw: "10.1.0.1" }], `${ROUTE}::/0 via 10.1.0.1 dev eth0': numerical result out of range`],
  [[{ dst: "0.0.0.0/0", gw: "10.2.0.1" }], `${ROUTE}0.0.0.0/0 via 10.2.0.1 dev eth0': network is unreachable`],
  [[{ dst: "::/0", gw: "fd01::1" }], `${ROUTE}::/0 via fd01::1 dev eth0': no route to host`],
  [[{ dst: "::/0", gw: "fe80::1" }], ""],
  [[{ dst: "10.2.0.1/32", scope: 253 }, { dst: "0.0.0.0/0", gw: "10.2.0.1" }], ""],
  [
    [{ dst: "10.2.0.1/32" }, { dst: "0.0.0.0/0", gw: "10.2.0.1" }],
    `${ROUTE}0.0.0.0/0 via 10.2.0.1 dev eth0': network is unreachable`,
  ],
  [[{ dst: "fd01::1/128" }, { dst: "::/0", gw: "fd01::1" }], ""],
  [
    [{ dst: "0.0.0.0/0", gw: "10.2.0.1" }, { dst: "10.2.0.1/32", scope: 253 }],
    `${ROUTE}0.0.0.0/0 via 10.2.0.1 dev eth0': network is unreachable`,
  ],
  // By a gateway no other gateway is reached.
  [
    [{ dst: "10.2.0.0/24", gw: "10.1.0.1" }, { dst: "0.0.0.0/0", gw: "10.2.0.1" }],
    `${ROUTE}0.0.0.0/0 via 10.2.0.1 dev eth0': network is unreachable`,
  ],
  [[{ dst: "192.0.2.0/24" }, { dst: "192.0.2.0/24" }], `${ROUTE}192.0.2.0/24 dev eth0': file exists`],
  [[{ dst: "192.0.2.0/24" }, { dst: "192.0.2.0/24", gw: "10.1.0.1" }, { dst: "192.0.2.0/24", priority: 5 }], ""],
  [[{ dst: "fd01::/64" }, { dst: "fd01::/64" }], ""],
])("routes %j: %s", (routes, reason) => expect(routed(routes)).toBe(reason));

test("a route whose gateway is 0.0.0.0 has none, as the kernel has it", () => {
  const addresses = [{ address: "10.1.0.2/24", gateway: "10.1.0.1" }], ifName = "eth0";
  const judge = (dst: string, gw: string) =>
    addressingKind.judge!(
      { ifName, addresses, routes: [{ dst, gw, scope: 253 }], sysctls: {}, detectDuplicates: false },
      undefined as never,
    );
  expect(said(() => judge("10.9.0.0/16", "0.0.0.0"))).toBe("");
  expect(said(() => judge("10.9.0.0/16", "0.0.0.1"))).toContain("network is unreachable");
});
