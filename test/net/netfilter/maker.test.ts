/** Whose a rule is that somebody has marked. */
import { expect, test } from "bun:test";
import { makerOf } from "../../../src/net/netfilter/owner.ts";
import type { RuleChain } from "../../../src/net/netfilter/ruleset.ts";

const attached = 'name: "shop" id: "web"';
const tables = ["inet t"];
const tagged = "id: web, if: eth0, net: shop", remark = "patchbay, too, writes such rules";

test.each([
  ["a mark of ours", { owner: tagged }, tables, { name: "patchbay", network: "shop", containerId: "web" }],
  ["our mark in a container's namespace", { owner: tagged }, undefined, { name: "CNI plugins" }],
  ["an attachment of nobody knows whom", { comment: attached }, tables, {
    name: "CNI plugins",
    network: "shop",
    containerId: "web",
    remark,
  }],
  ["an attachment in a container's namespace", { comment: attached }, undefined, {
    name: "CNI plugins",
    network: "shop",
    containerId: "web",
  }],
])("whose is a rule with %s", (_, rule, own, expected) => {
  const chain: RuleChain = { family: "ip", table: "nat", name: "CNI-00", rules: [] };
  const place = { chain, rule: { handle: 1n, operations: [], ...rule } };
  expect(makerOf(place, { chains: [chain] }, own)).toEqual(expected);
});
