/**
 * Transactions: several messages that take effect together or not at all (linux/netfilter/nfnetlink.h).
 *
 * A transaction that the kernel refuses costs 8 ms and more, because it waits for RCU before it lets go of what it had
 * prepared (measured, Linux 6.18), where one that works takes 5 µs. So callers ask first and do not try.
 *
 * With a generation the kernel refuses, at no cost, when the rule set is not the one the caller looked at.
 */
import { ERESTART } from "../../errno.ts";
import { attributeAt, attrTable, u32be } from "../attrs.ts";
import { isNetlinkError, NetlinkError, type NetlinkSocket } from "../socket.ts";
import { HEADER_BYTES as NETLINK_HEADER_BYTES, NLM_F_ACK, NLM_F_REQUEST, type Writer } from "../wire.ts";
import {
  NFNL_BATCH_GENID,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFNL_SUBSYS_NFTABLES,
  NFT_MSG_DELCHAIN,
  NFT_MSG_DELRULE,
  NFT_MSG_DELSET,
  NFT_MSG_DELSETELEM,
  NFT_MSG_DELTABLE,
  NFT_MSG_GETGEN,
  NFT_MSG_NEWTABLE,
  NFTA_GEN_ID,
} from "../uapi/nf-tables.ts";
import { get, HEADER_BYTES, messageType, type NftMessage, writeBody } from "./message.ts";
import { newAndDormant } from "./table.ts";

/** What the kernel takes apart behind the transaction. */
const DELETIONS = [NFT_MSG_DELTABLE, NFT_MSG_DELCHAIN, NFT_MSG_DELRULE, NFT_MSG_DELSET, NFT_MSG_DELSETELEM];

/** How often a transaction is tried while others keep changing the rule set: each try takes some 50 µs. */
const ATTEMPTS = 1000;

const batchAttrs = attrTable("NFNL_BATCH", { generation: u32be(NFNL_BATCH_GENID) });
const generationAttrs = attrTable("NFTA_GEN", { id: u32be(NFTA_GEN_ID) });

/** Sends the messages as one transaction. Throws what the kernel said about the first it refused. */
export function commit(socket: NetlinkSocket, messages: readonly NftMessage[], generation?: number): void {
  if (messages.length === 0) return;
  transact(socket, messages, { generation });
  if (messages.some(({ type }) => DELETIONS.includes(type))) socket.closesSlowly = true;
}

/**
 * Lets the kernel check the messages and do nothing: a transaction without its end is taken back, which is how
 * `nft --check` works. Tables are to be made asleep, so that no packet meets their chains meanwhile. Throws as `commit`.
 */
export function rehearse(socket: NetlinkSocket, messages: readonly NftMessage[]): void {
  const asleep: NftMessage[] = [];
  for (const message of messages) asleep.push(message.type === NFT_MSG_NEWTABLE ? newAndDormant(message) : message);
  transact(socket, asleep, { endless: true });
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
      writer.u8(0).u8(0).u16be(NFNL_SUBSYS_NFTABLES);
      if (type === NFNL_MSG_BATCH_BEGIN) batchAttrs.encode(writer, { generation });
      writer.finish();
    };
    let number = 0;
    fence(NFNL_MSG_BATCH_BEGIN);
    messages.forEach((message, index) => {
      starts.push(writer.length);
      // The kernel acknowledges none on its own, and the end of the batch not at all before Linux 6.10.
      const ack = index === messages.length - 1 ? NLM_F_ACK : 0;
      number = next();
      writer.start(messageType(message.type), NLM_F_REQUEST | message.flags | ack, number);
      writeBody(writer, message);
      writer.finish();
    });
    if (!endless) fence(NFNL_MSG_BATCH_END);
    sent = { writer, starts };
    return number;
  });
  const [first] = errors;
  if (first === undefined) return;
  const { index, errno, text, offset } = first;
  const message = messages[index - 1];
  // About the beginning of the batch the kernel says what is wrong with all of it.
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

/** The number of the rule set as it is now; every transaction of anybody in the namespace gives it a new one. */
function currentGeneration(socket: NetlinkSocket): number | undefined {
  const question = {
    what: "get ruleset generation",
    type: NFT_MSG_GETGEN,
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
 * Looks at the rule set and changes it, as if nobody else could in between: `plan` says what to send after looking, and
 * looks again when the rule set has changed meanwhile. Answers false when the kernel has no nf_tables.
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
