/**
 * Transactions: several messages that take effect together or not at all (linux/netfilter/nfnetlink.h).
 *
 * A transaction that the kernel refuses takes 8 ms or more, because the kernel waits for RCU before it frees what it had
 * prepared (measured, Linux 6.18); a successful one takes 5 µs. So callers look first and do not try.
 *
 * With a generation the kernel refuses a transaction, at no cost, when the rule set has changed since that generation.
 */
import { ERESTART } from "../../errno.ts";
import { attributeAt, attrTable, u32be } from "../attrs.ts";
import { isNetlinkError, NetlinkError, type NetlinkSocket } from "../socket.ts";
import { HEADER_BYTES as NETLINK_HEADER_BYTES, NLM_F_ACK, NLM_F_REQUEST, type Writer } from "../wire.ts";
import * as nft from "../uapi/nf-tables.ts";
import { get, HEADER_BYTES, messageType, type NftMessage, writeBody } from "./message.ts";
import { newAndDormant } from "./table.ts";

/** Messages after which the kernel frees objects later (`NetlinkSocket.closesSlowly`). */
const DELETIONS = [
  nft.NFT_MSG_DELTABLE,
  nft.NFT_MSG_DELCHAIN,
  nft.NFT_MSG_DELRULE,
  nft.NFT_MSG_DELSET,
  nft.NFT_MSG_DELSETELEM,
];

/** Limit of attempts while others keep changing the rule set. An attempt takes some 50 µs. */
const ATTEMPTS = 1000;

const batchAttrs = attrTable("NFNL_BATCH", { generation: u32be(nft.NFNL_BATCH_GENID) });
const generationAttrs = attrTable("NFTA_GEN", { id: u32be(nft.NFTA_GEN_ID) });

/** Sends the messages as one transaction. Throws the kernel's reason for the first message it refused. */
export function commit(socket: NetlinkSocket, messages: readonly NftMessage[], generation?: number): void {
  if (messages.length === 0) return;
  transact(socket, messages, { generation });
  if (messages.some(({ type }) => DELETIONS.includes(type))) socket.closesSlowly = true;
}

/**
 * Lets the kernel check the messages without effect: it undoes a transaction without an end, which is how `nft --check`
 * works. Makes tables dormant, so that no packet meets their chains meanwhile. Throws like `commit`.
 */
export function rehearse(socket: NetlinkSocket, messages: readonly NftMessage[]): void {
  const dormant: NftMessage[] = [];
  for (const message of messages) {
    dormant.push(message.type === nft.NFT_MSG_NEWTABLE ? newAndDormant(message) : message);
  }
  transact(socket, dormant, { endless: true });
}

function transact(
  socket: NetlinkSocket,
  messages: readonly NftMessage[],
  { generation, endless }: { generation?: number; endless?: true },
): void {
  let sent: { writer: Writer; starts: number[] } | undefined;
  const errors = socket.transact(`${messages[0]!.what} and ${messages.length - 1} more`, (writer, next) => {
    const starts: number[] = [];
    const fence = (type: number) => {
      writer.start(type, NLM_F_REQUEST, next());
      writer.u8(0).u8(0).u16be(nft.NFNL_SUBSYS_NFTABLES);
      if (type === nft.NFNL_MSG_BATCH_BEGIN) batchAttrs.encode(writer, { generation });
      writer.finish();
    };
    let number = 0;
    fence(nft.NFNL_MSG_BATCH_BEGIN);
    messages.forEach((message, index) => {
      starts.push(writer.length);
      // The kernel acknowledges on request only, and before Linux 6.10 never the end of the batch.
      const ack = index === messages.length - 1 ? NLM_F_ACK : 0;
      number = next();
      writer.start(messageType(message.type), NLM_F_REQUEST | message.flags | ack, number);
      writeBody(writer, message);
      writer.finish();
    });
    if (!endless) fence(nft.NFNL_MSG_BATCH_END);
    sent = { writer, starts };
    return number;
  });
  const [first] = errors;
  if (first === undefined) return;
  const { index, errno, text, offset } = first;
  const message = messages[index - 1];
  // An error of the beginning is one of the batch as a whole.
  if (message === undefined) throw new NetlinkError(`nftables transaction (${messages[0]!.what} …)`, errno, text);
  const bodyAt = NETLINK_HEADER_BYTES + HEADER_BYTES;
  const attribute = offset > bodyAt
    ? attributeAt(message.table, messageBytes(sent!, index - 1).subarray(bodyAt), offset - bodyAt)
    : undefined;
  const place = messages.length > 1 ? ` (${index} of ${messages.length})` : "";
  throw new NetlinkError(`${message.what}${place}`, errno, text, attribute);
}

function messageBytes({ writer, starts }: { writer: Writer; starts: number[] }, index: number): Uint8Array {
  return writer.bytes.subarray(starts[index], starts[index + 1] ?? writer.length);
}

/** The generation of the rule set, which every transaction in the namespace increments. */
export function currentGeneration(socket: NetlinkSocket): number | undefined {
  const question = {
    what: "get ruleset generation",
    type: nft.NFT_MSG_GETGEN,
    flags: 0,
    family: 0,
    table: generationAttrs,
  };
  return get(socket, { ...question, values: {} }, generationAttrs)?.id;
}

export function hasNfTables(socket: NetlinkSocket): boolean {
  return currentGeneration(socket) !== undefined;
}

/**
 * Reads and changes the rule set atomically: `plan` looks and answers what to send, and is called again when the rule set
 * has changed since it looked. Returns false when the kernel has no nf_tables.
 */
export function commitUnchanged(socket: NetlinkSocket, plan: () => readonly NftMessage[]): boolean {
  for (let attempt = 1;; attempt++) {
    const generation = currentGeneration(socket);
    if (generation === undefined) return false;
    try {
      commit(socket, plan(), generation);
      return true;
    } catch (error) {
      if (attempt === ATTEMPTS || !isNetlinkError(error, ERESTART)) throw error;
    }
  }
}
