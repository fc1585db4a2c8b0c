/** Whose a rule is that somebody has marked, and what the rooms above know of attachments. */
import { expect, test } from "bun:test";
import { makerOf } from "../../../src/net/netfilter/owner.ts";
import type { RuleChain } from "../../../src/net/netfilter/ruleset.ts";

const attached = 'name: "shop" id: "web"';
const own = (hasAttachment?: () => boolean) => ({ tables: ["inet t"], hasAttachment });
const tagged = "id: web, if: eth0, net: shop", remark = "patchbay, too, writes such rules";

test.each([
  ["a mark of ours", { owner: tagged }, own(), { name: "patchbay", network: "shop", containerId: "web" }],
  ["our mark in a container's namespace", { owner: tagged }, undefined, { name: "CNI plugins" }],
  ["an attachment of nobody knows whom", { comment: attached }, own(), {
    name: "CNI plugins",
    network: "shop",
    containerId: "web",
    remark,
  }],
  ["an attachment of ours", { comment: attached }, own(() => true), {
    name: "patchbay",
    network: "shop",
    containerId: "web",
  }],
  ["an attachment of others", { comment: attached }, own(() => false), {
    name: "CNI plugins",
    network: "shop",
    containerId: "web",
  }],
])("whose is a rule with %s", (_, rule, own, expected) => {
  const chain: RuleChain = { family: "ip", table: "nat", name: "CNI-00", rules: [] };
  const place = { chain, rule: { handle: 1n, operations: [], ...rule } };
  expect(makerOf(place, { chains: [chain] }, own)).toEqual(expected);
});
