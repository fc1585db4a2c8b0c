/** In a namespace of its own: tables, chains and comments with all that the kernel permits, which nft would refuse. */
import { attrTable, binary, custom } from "../../../src/ffi/netlink/attrs.ts";
import { commitUnchanged } from "../../../src/ffi/netlink/nftables/batch.ts";
import { accept, drop } from "../../../src/ffi/netlink/nftables/action.ts";
import { comment } from "../../../src/ffi/netlink/nftables/comment.ts";
import { type Expression, expressionList } from "../../../src/ffi/netlink/nftables/expression.ts";
import { commentMatch } from "../../../src/ffi/netlink/nftables/extension.ts";
import type { NftMessage } from "../../../src/ffi/netlink/nftables/message.ts";
import { addRule } from "../../../src/ffi/netlink/nftables/rule.ts";
import { addBaseChain, addTable, type Chain } from "../../../src/ffi/netlink/nftables/table.ts";
import { NETLINK_NETFILTER, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { utf8 } from "../../../src/ffi/libc.ts";
import * as nft from "../../../src/ffi/netlink/uapi/nf-tables.ts";

const FORWARD = { type: "filter", hook: 2, priority: 0 } as const;

function chainWith(table: string, name: string, expressions: Expression[][], userdata?: Uint8Array): NftMessage[] {
  const chain: Chain = {
    table: { family: table === "filter" ? nft.NFPROTO_IPV4 : nft.NFPROTO_INET, name: table },
    name,
  };
  const rules = expressions.map((rule) =>
    addRule(chain, rule, { userdata, compat: table === "filter" ? { protocol: 0 } : undefined })
  );
  return [addTable(chain.table), addBaseChain(chain, FORWARD), ...rules];
}

const raw = attrTable("NFTA_CHAIN", { table: binary(nft.NFTA_CHAIN_TABLE), name: binary(nft.NFTA_CHAIN_NAME) });
const rawRule = attrTable("NFTA_RULE", {
  table: binary(nft.NFTA_RULE_TABLE),
  chain: binary(nft.NFTA_RULE_CHAIN),
  expressions: custom(nft.NFTA_RULE_EXPRESSIONS, expressionList),
});

/** Names that are no UTF-8, and would be the same where that is not looked at. */
function chainOfBytes(name: number[], rule: Expression): NftMessage[] {
  const where = { table: utf8("x\0"), name: Uint8Array.of(...name, 0) };
  const message = { what: "create", flags: 0x400, family: nft.NFPROTO_INET };
  return [
    { ...message, type: nft.NFT_MSG_NEWCHAIN, table: raw, values: where },
    {
      ...message,
      type: nft.NFT_MSG_NEWRULE,
      table: rawRule,
      values: { table: where.table, chain: where.name, expressions: [rule] },
    },
  ];
}

const socket = openNetlink(NETLINK_NETFILTER), long = "\u202e".repeat(84);
commitUnchanged(socket, () => [
  ...chainWith("x", "y z", [[accept]]),
  ...chainWith("x y", "z", [[drop]], comment("\x1b[2J\nroot")),
  ...chainWith(`\x1b]0;${"x".repeat(245)}\x07`, long, [[accept]], comment(long)),
  ...chainWith("filter", "CNI-\r", [
    [commentMatch('name: "\x1b[31m" id: "\x07\u009b"'), accept],
    [commentMatch("\ud800\u2028".repeat(30)), accept],
  ]),
  ...chainOfBytes([0xff, 0x9b], drop),
  ...chainOfBytes([0xfe, 0x9b], accept),
]);
socket.close();
