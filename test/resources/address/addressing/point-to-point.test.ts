/** The routes of a point-to-point link: to each gateway once, and to the rest of each subnet through it. */
import { expect, test } from "bun:test";
import { pointToPointRoutes } from "../../../../src/resources/address/addressing/point-to-point.ts";
import { describeRoute } from "../../../../src/ffi/netlink/route/route.ts";
import { RT_SCOPE_LINK } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress } from "../../../../src/net/address.ts";

type Endpoints = Parameters<typeof pointToPointRoutes>[0];

/** `10.1.0.1/32 from 10.1.0.2`, with the gateway between. */
function told(endpoints: Endpoints): { direct: string[]; subnets: string[] } {
  const { direct, subnets } = pointToPointRoutes(endpoints, 7);
  expect([...direct, ...subnets].map(({ oif }) => oif)).toEqual([...direct, ...subnets].map(() => 7));
  expect(direct.map(({ scope }) => scope)).toEqual(direct.map(() => RT_SCOPE_LINK));
  expect(subnets.map(({ scope }) => scope)).toEqual(subnets.map(() => undefined));
  const text = (route: (typeof direct)[number]) =>
    `${describeRoute(route)} from ${formatAddress(route.preferredSource!)}`;
  return { direct: direct.map(text), subnets: subnets.map(text) };
}

test("in both families", () => {
  expect(told([{ address: "10.1.0.2/24", gateway: "10.1.0.1" }, { address: "fd00::2/64", gateway: "fd00::1" }]))
    .toEqual({
      direct: ["10.1.0.1/32 from 10.1.0.2", "fd00::1/128 from fd00::2"],
      subnets: ["10.1.0.0/24 via 10.1.0.1 from 10.1.0.2", "fd00::/64 via fd00::1 from fd00::2"],
    });
});

test("several addresses with one gateway have one way to it, and one to each subnet", () => {
  const endpoints = ["10.1.0.2/24", "10.1.0.3/24", "10.1.0.4/25"].map((address) => ({
    address,
    gateway: "10.1.0.1",
  }));
  expect(told(endpoints)).toEqual({
    direct: ["10.1.0.1/32 from 10.1.0.2"],
    subnets: ["10.1.0.0/24 via 10.1.0.1 from 10.1.0.2", "10.1.0.0/25 via 10.1.0.1 from 10.1.0.4"],
  });
});

test("a single address has no subnet, and one without a gateway no way", () => {
  expect(told([{ address: "10.1.0.2/32", gateway: "10.1.0.1" }, { address: "fd00::2/128", gateway: "fd00::1" }]))
    .toEqual({
      direct: ["10.1.0.1/32 from 10.1.0.2", "fd00::1/128 from fd00::2"],
      subnets: [],
    });
  expect(told([{ address: "10.1.0.2/24" }, { address: "10.2.0.2/24", gateway: "none" }])).toEqual({
    direct: [],
    subnets: [],
  });
});
