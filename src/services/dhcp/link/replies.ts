/**
 * The replies that are read after a message of ours. A server answers once or a few times. The kernel drops what is no
 * answer. A sender of more answers than a server would send is silenced there, too, so that the others are heard. When
 * many senders do that, nobody is heard until the next message. So a flood on one link costs the service a bounded amount
 * of work for each message.
 */
import { type FilterRule, has } from "../../../ffi/socket/filter.ts";

const MOST_OF_ONE = 32, MOST = 256;

export class Replies {
  private readonly counts = new Map<string, number>();
  private readonly silenced: Uint8Array[] = [];
  private read = 0;

  /** `answers`: what passes the kernel. `senderAt`: where its sender's address is. */
  constructor(
    private readonly socket: { setFilter(rules: readonly FilterRule[]): void },
    private readonly answers: readonly FilterRule[],
    private readonly senderAt: number,
  ) {
    this.listen();
  }

  private listen(): void {
    const fromThem = this.silenced.map((sender) => ({ keeps: false, when: has(this.senderAt, sender) }));
    this.socket.setFilter([...fromThem, ...this.answers]);
  }

  /** No more of them are to be read. */
  get isSpent(): boolean {
    return this.read >= MOST;
  }

  /** Whether something of this sender is to be read. */
  admits(sender: Uint8Array): boolean {
    const name = sender.toHex(), count = this.counts.get(name) ?? 0;
    // The reply came before its sender was silenced.
    if (count === MOST_OF_ONE) return false;
    this.counts.set(name, count + 1);
    this.read++;
    if (count + 1 === MOST_OF_ONE) {
      this.silenced.push(sender);
      this.listen();
    }
    return true;
  }
}

/** An arrival without `message` does not concern the client. */
export interface Arrival<Message> {
  message?: Message;
  /** The address of who sent it, as the socket knows it. */
  from: Uint8Array;
}
