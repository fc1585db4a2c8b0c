/** What the maps hold: asked for element by element, or listed once where many are asked for. */
import { type Element, getElement, type Key, listElements } from "../../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { overlaps, RANGES } from "./nft-elements.ts";
import { mapOf } from "./nft-structure.ts";

/** From this number of questions on, listing is faster. */
const MANY = 65;

export class Contents {
  private readonly lists = new Map<string, Element[]>();
  private readonly byKey = new Map<string, Map<string, Element>>();

  constructor(private readonly socket: NetlinkSocket, private readonly questions: number) {}

  list(map: string): Element[] {
    let elements = this.lists.get(map);
    if (elements === undefined) this.lists.set(map, elements = listElements(this.socket, mapOf(map)));
    return elements;
  }

  /** The element with this key, or whose interval holds it. */
  at(map: string, key: Uint8Array): Element | undefined {
    if (this.questions < MANY) return getElement(this.socket, mapOf(map), key);
    if (map.startsWith(RANGES)) return this.list(map).find((element) => overlaps(element, { key }));
    let index = this.byKey.get(map);
    if (index === undefined) {
      this.byKey.set(map, index = new Map());
      for (const element of this.list(map)) index.set(element.key.toHex(), element);
    }
    return index.get(key.toHex());
  }

  /** The elements of the map that have a port in common with the place. */
  overlapping(map: string, place: Key): Element[] {
    if (place.keyEnd !== undefined) return this.list(map).filter((element) => overlaps(element, place));
    const element = this.at(map, place.key);
    return element === undefined ? [] : [element];
  }
}
