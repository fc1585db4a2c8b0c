/** Sets and maps of all tables, for people to read; for rules, whole-ruleset.ts reads them. */
import type { RulesFamily, SetElement } from "../../../net/netfilter/ruleset.ts";
import type { SetFacts } from "../../../net/netfilter/set-text.ts";
import type { NetlinkSocket } from "../socket.ts";
import * as nft from "../uapi/nf-tables.ts";
import { familyNames, familyNumber, listObjects } from "./message.ts";
import { elementListAttrs, setAttrs } from "./set.ts";
import { listAll, ListedElement } from "./whole-ruleset.ts";

export interface ListedSet extends SetFacts {
  family: RulesFamily;
  table: string;
  name: string;
}

export function listAllSets(socket: NetlinkSocket): ListedSet[] {
  return listAll(socket, nft.NFT_MSG_GETSET, setAttrs, (found, number): ListedSet[] => {
    const family = familyNames[number], { table, name, flags = 0, keyType = 0, dataType, description } = found;
    if (family === undefined || table === undefined || name === undefined) return [];
    const isMap = (flags & nft.NFT_SET_MAP) !== 0;
    return [{
      family,
      table,
      name,
      isMap,
      isInterval: (flags & nft.NFT_SET_INTERVAL) !== 0 && (flags & nft.NFT_SET_CONCAT) === 0,
      keyType,
      dataType,
      parts: (description?.parts ?? []).map(({ length }) => length!),
    }];
  });
}

class SeenEnough extends Error {}

/**
 * So many elements at most, and whether there are more. Then `socket` is of no use any more, because the kernel has not come
 * to the end of its answer.
 */
export function listSomeElements(
  socket: NetlinkSocket,
  { family, table, name }: ListedSet,
  most: number,
): { elements: SetElement[]; isCut: boolean } {
  const what = `list elements ${family} ${table} ${name}`, values = { table, set: name };
  const message = { what, type: nft.NFT_MSG_GETSETELEM, flags: 0, family: familyNumber(family) };
  let elements: SetElement[] = [];
  try {
    elements = listObjects<SetElement>(socket, { ...message, table: elementListAttrs, values }, (payload, found) => {
      for (const each of elementListAttrs.decode(payload).elements ?? []) found.push(new ListedElement(each));
      elements = found;
      if (found.length > most) throw new SeenEnough();
    });
  } catch (error) {
    if (!(error instanceof SeenEnough)) throw error;
  }
  return { elements: elements.slice(0, most), isCut: elements.length > most };
}
