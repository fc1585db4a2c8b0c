/** The chains of nf_tables, whoever made them. */
import * as nft from "../uapi/nf-tables.ts";
import { attrTable, nest, text, u32be } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { dump } from "./message.ts";
import type { Chain } from "./table.ts";

const chainAttrs = attrTable("NFTA_CHAIN", {
  table: text(nft.NFTA_CHAIN_TABLE),
  name: text(nft.NFTA_CHAIN_NAME),
  hook: nest(nft.NFTA_CHAIN_HOOK, attrTable("NFTA_HOOK", { number: u32be(nft.NFTA_HOOK_HOOKNUM) })),
  policy: u32be(nft.NFTA_CHAIN_POLICY),
});

type ListedChain = ReturnType<typeof chainAttrs.decode>;

export function listChains(socket: NetlinkSocket, family: number): ListedChain[] {
  let chains: ListedChain[] = [];
  const question = {
    what: "list chains",
    type: nft.NFT_MSG_GETCHAIN,
    flags: 0,
    family,
    table: chainAttrs,
    values: {},
  };
  dump(socket, question, (payload) => void chains.push(chainAttrs.decode(payload)), () => void (chains = []));
  return chains;
}

/** Chains of the hook that drop packets of these families unless a rule of theirs accepts them. */
export function droppingChains(socket: NetlinkSocket, hook: number, families: readonly (4 | 6)[]): Chain[] {
  const wanted = families.map((family) => family === 4 ? nft.NFPROTO_IPV4 : nft.NFPROTO_IPV6);
  return [nft.NFPROTO_INET, ...wanted].flatMap((family) =>
    listChains(socket, family)
      .filter((chain) => chain.hook?.number === hook && chain.policy === nft.NF_DROP)
      .map(({ table, name }) => ({ table: { family, name: table! }, name: name! }))
  );
}
