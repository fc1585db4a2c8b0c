/**
 * u32: a filter that compares words of the packet, starting at its network header (tc-u32(8), linux/pkt_cls.h
 * TCA_U32_*), and mirred, the action that redirects packets to another link (tc-mirred(8), linux/tc_act/tc_mirred.h).
 */
import { type AttrsOf, attrTable, custom, nest, nestedList, text, u32 } from "../attrs.ts";
import {
  TC_ACT_STOLEN,
  TC_U32_TERMINAL,
  TCA_ACT_KIND,
  TCA_ACT_OPTIONS,
  TCA_EGRESS_REDIR,
  TCA_MIRRED_PARMS,
  TCA_U32_ACT,
  TCA_U32_CLASSID,
  TCA_U32_SEL,
} from "../uapi/traffic-control.ts";
import type { TcKind } from "./tc-object.ts";

/** Matches when the word at `offset` has `value` in the bits of `mask`. */
export interface U32Key {
  offset: number;
  value: number;
  mask: number;
}

/** Matches every packet of the list's protocol. */
export const ANY_PACKET: readonly U32Key[] = [{ offset: 0, value: 0, mask: 0 }];

const SELECTOR_BYTES = 16, KEY_BYTES = 16, MIRRED_BYTES = 28;
const NO_REDIRECT = -1;

/**
 * struct tc_u32_sel: flags u8, shift u8, number of keys u8, pad, offset mask u16be, offset u16, offset's offset s16, hash
 * offset s16, hash mask u32be; then keys of mask u32be, value u32be, offset s32, offset mask s32.
 */
const selector = custom<readonly U32Key[]>(TCA_U32_SEL, {
  write(writer, keys) {
    writer.u8(TC_U32_TERMINAL).u8(0).u8(keys.length).u8(0).u16be(0).u16(0).u16(0).u16(0).u32be(0);
    for (const { offset, value, mask } of keys) writer.u32be(mask).u32be(value).u32(offset).u32(0);
  },
  read(payload) {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    const keys: U32Key[] = [];
    for (let at = SELECTOR_BYTES; at + KEY_BYTES <= payload.length; at += KEY_BYTES) {
      keys.push({
        mask: view.getUint32(at, false),
        value: view.getUint32(at + 4, false),
        offset: view.getInt32(at + 8, true),
      });
    }
    return keys;
  },
});

/** struct tc_mirred: index u32, capab u32, action s32, refcnt s32, bindcnt s32, what s32, link's index u32. */
const mirredParams = custom<{ linkIndex: number }>(TCA_MIRRED_PARMS, {
  write: (writer, { linkIndex }) =>
    void writer.u32(0).u32(0).u32(TC_ACT_STOLEN).u32(0).u32(0).u32(TCA_EGRESS_REDIR).u32(linkIndex),
  read(payload) {
    // Other actions use the same attribute number for other things.
    if (payload.length < MIRRED_BYTES) return { linkIndex: NO_REDIRECT };
    const view = new DataView(payload.buffer, payload.byteOffset, MIRRED_BYTES);
    // Mirroring is not redirecting: the packet also continues here.
    return { linkIndex: view.getInt32(20, true) === TCA_EGRESS_REDIR ? view.getUint32(24, true) : NO_REDIRECT };
  },
});

const mirredAttrs = attrTable("TCA_ACT_OPTIONS(mirred)", { params: mirredParams });
const actionAttrs = attrTable("TCA_ACT", { kind: text(TCA_ACT_KIND), options: nest(TCA_ACT_OPTIONS, mirredAttrs) });

const u32Attrs = attrTable("TCA_OPTIONS(u32)", {
  classId: u32(TCA_U32_CLASSID),
  selector,
  // A list of actions, numbered from 1; we use one.
  actions: nestedList(TCA_U32_ACT, 1, actionAttrs),
});

/** Assigns matching packets to the class. */
export function u32Class(keys: readonly U32Key[], classId: number): TcKind {
  return { name: "u32", write: (writer) => u32Attrs.encode(writer, { classId, selector: keys }) };
}

/** Redirects matching packets to another link. */
export function u32Redirect(keys: readonly U32Key[], classId: number, linkIndex: number): TcKind {
  const action = { kind: "mirred", options: { params: { linkIndex } } };
  return { name: "u32", write: (writer) => u32Attrs.encode(writer, { classId, selector: keys, actions: [action] }) };
}

interface U32Filter {
  keys: readonly U32Key[];
  classId: number;
  /** Indexes of the links that packets are redirected to; 0 for a link that no longer exists. */
  redirects: number[];
}

/** Undefined for hash tables of filters, which the kernel lists together with the filters. */
export function readU32(options: Uint8Array): U32Filter | undefined {
  const { selector: keys, classId = 0, actions = [] } = u32Attrs.decode(options);
  if (keys === undefined) return undefined;
  const redirects: number[] = [];
  for (const { kind, options } of actions as AttrsOf<typeof actionAttrs.rows>[]) {
    const linkIndex = options?.params?.linkIndex ?? NO_REDIRECT;
    if (kind === "mirred" && linkIndex !== NO_REDIRECT) redirects.push(linkIndex);
  }
  return { keys, classId, redirects };
}
