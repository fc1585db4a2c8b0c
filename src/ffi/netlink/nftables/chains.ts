/** The chains of nf_tables, whoever made them. */
import * as nft from "../uapi/nf-tables.ts";
import { attrTable, text } from "../attrs.ts";
import type { NetlinkSocket } from "../socket.ts";
import { listObjects } from "./message.ts";

const chainAttrs = attrTable("NFTA_CHAIN", {
  table: text(nft.NFTA_CHAIN_TABLE),
  name: text(nft.NFTA_CHAIN_NAME),
});

type ListedChain = ReturnType<typeof chainAttrs.decode>;

export function listChains(socket: NetlinkSocket, family: number): ListedChain[] {
  const question = {
    what: "list chains",
    type: nft.NFT_MSG_GETCHAIN,
    flags: 0,
    family,
    table: chainAttrs,
    values: {},
  };
  return listObjects(socket, question, (payload, chains) => void chains.push(chainAttrs.decode(payload)));
}
