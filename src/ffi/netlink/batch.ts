/**
 * Several messages in one datagram, each of which the kernel may refuse: netfilter's batches
 * (linux/netfilter/nfnetlink.h). What is in them is nftables/batch.ts's.
 */
import { ENOBUFS, isErrno, SyscallError } from "../errno.ts";
import { nextSequence, writer } from "./exchange.ts";
import { ackStatus, type ExtendedAck, extendedAck } from "./netlink-error.ts";
import { receiveFromKernel, type Transport } from "./transport.ts";
import { eachMessage, NLMSG_ERROR, type Writer } from "./wire.ts";

export interface BatchError extends ExtendedAck {
  /** Counts the messages of the batch, the opening one included. */
  index: number;
  errno: number;
}

/**
 * Sends a batch, which its first message opens. `next` gives each message its sequence number, and `write` answers the
 * number of the message that asks for an ACK. Returns what the kernel refused, in order; nothing when it did all.
 */
export function sendBatch(
  transport: Transport,
  what: string,
  write: (writer: Writer, next: () => number) => number,
): BatchError[] {
  let first: number | undefined, last = 0;
  writer.reset();
  const acknowledged = write(writer, () => {
    last = nextSequence();
    first ??= last;
    return last;
  });
  transport.send(writer.bytes.subarray(0, writer.length), what);
  return receiveErrors(transport, what, { first: first ?? last, acknowledged, last });
}

/**
 * The kernel handles every message whatever happened to the ones before, unless it refuses the batch as a whole, and has
 * put all answers into our queue before `send` returned.
 */
function receiveErrors(
  transport: Transport,
  what: string,
  { first, acknowledged, last }: Record<"first" | "acknowledged" | "last", number>,
): BatchError[] {
  const errors: BatchError[] = [];
  let finished = false, overrun = false;
  while (!finished) {
    let datagram: Uint8Array | undefined;
    try {
      datagram = receiveFromKernel(transport, !overrun);
    } catch (error) {
      // More refusals than the queue holds. The kernel says so once; the queue has to be emptied, or it would have no
      // room for later answers.
      if (!isErrno(error, ENOBUFS) || overrun) throw error;
      overrun = true;
      continue;
    }
    if (datagram === undefined) {
      // Something was lost, but a refusal says how it ended all the same.
      if (errors.length === 0) throw new SyscallError("recvfrom AF_NETLINK", ENOBUFS, what);
      return errors;
    }
    eachMessage(datagram, (message) => {
      const { type, sequence } = message;
      if (type !== NLMSG_ERROR || sequence < first || sequence > last) return;
      const errno = -ackStatus(message);
      if (errno !== 0) errors.push({ index: sequence - first, errno, ...extendedAck(message) });
      // After an overrun a refusal ends nothing: the queue has to be emptied.
      if (sequence === first || (sequence === acknowledged && (!overrun || errno === 0))) finished = true;
    });
  }
  return errors;
}
