/** Everything that nf_tables holds, without its order and its counters: `nft list ruleset` for comparing two moments. */
import * as nft from "../uapi/nf-tables.ts";
import { attrTable, binary, text } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { listChains } from "./chains.ts";
import { commentIn } from "./comment.ts";
import { familyName, listObjects } from "./message.ts";
import { listElements } from "./set.ts";

const ruleAttrs = attrTable("NFTA_RULE", {
  table: text(nft.NFTA_RULE_TABLE),
  chain: text(nft.NFTA_RULE_CHAIN),
  expressions: binary(nft.NFTA_RULE_EXPRESSIONS),
  userdata: binary(nft.NFTA_RULE_USERDATA),
});

const setAttrs = attrTable("NFTA_SET", { table: text(nft.NFTA_SET_TABLE), name: text(nft.NFTA_SET_NAME) });

/** In these families a list is asked for by family. */
const FAMILIES = [nft.NFPROTO_INET, nft.NFPROTO_IPV4, nft.NFPROTO_IPV6, nft.NFPROTO_BRIDGE];

/** A line for each chain, rule and element. */
export function rulesetLines(socket: NetlinkSocket): string[] {
  return FAMILIES.flatMap((family) => [chainLines, ruleLines, elementLines].flatMap((list) => list(socket, family)));
}

function chainLines(socket: NetlinkSocket, family: number): string[] {
  return listChains(socket, family).map(({ table, name }) => `chain ${familyName(family)} ${table} ${name}`);
}

function ruleLines(socket: NetlinkSocket, family: number): string[] {
  const question = { what: "list rules", type: nft.NFT_MSG_GETRULE, flags: 0, family, table: ruleAttrs, values: {} };
  return listObjects(socket, question, (payload, lines) => {
    const { table, chain, expressions, userdata } = ruleAttrs.decode(payload);
    const comment = commentIn(userdata), shown = comment === "" ? `of ${expressions?.length ?? 0} bytes` : comment;
    lines.push(`rule in ${familyName(family)} ${table} ${chain}: ${shown}`);
  });
}

function elementLines(socket: NetlinkSocket, family: number): string[] {
  const question = { what: "list sets", type: nft.NFT_MSG_GETSET, flags: 0, family, table: setAttrs, values: {} };
  const sets = listObjects<{ table: string; name: string }>(socket, question, (payload, found) => {
    const { table, name } = setAttrs.decode(payload);
    found.push({ table: table!, name: name! });
  });
  return sets.flatMap(({ table, name }) =>
    listElements(socket, { table: { family, name: table }, name }).map(({ key, comment }) =>
      `element of ${familyName(family)} ${table} ${name}: ${key.toHex()}${comment === "" ? "" : ` ${comment}`}`
    )
  );
}
