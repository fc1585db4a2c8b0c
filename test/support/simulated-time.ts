/** What the simulations of both DHCP clients have in common: a clock that only the test moves, and what the client did. */
interface Client<Action> {
  readonly due: number;
  tick(now: number): Action[];
}

interface Logged {
  do: string;
  text?: string;
}

export abstract class SimulatedTime<Action extends Logged, Sent> {
  now = 1000;
  readonly sent: Sent[] = [];
  /** Actions other than messages, by name; log lines as they are. */
  readonly did: string[] = [];
  readonly actions: Action[] = [];
  private xids = 0;

  abstract readonly client: Client<Action>;
  /** Undefined when the action is no message. */
  protected abstract sentBy(action: Action): Sent | undefined;

  /** The settings of a client that asks nobody and leaves nothing to chance. */
  protected readonly usual = {
    probe: false,
    allowsServer: () => true,
    random: () => 0.5,
    newXid: () => ++this.xids,
  };

  take(actions: Action[]): Sent[] {
    const sent: Sent[] = [];
    for (const action of actions) {
      const message = this.sentBy(action);
      if (message !== undefined) sent.push(message);
      else this.did.push(action.do === "log" ? action.text! : action.do);
    }
    this.actions.push(...actions);
    this.sent.push(...sent);
    return sent;
  }

  /** Lets time pass; nobody answers. */
  pass(seconds: number): Sent[] {
    const end = this.now + seconds, sent: Sent[] = [];
    for (let count = 0; this.client.due <= end; count++) {
      if (count > 1000) throw new Error("a storm");
      this.now = Math.max(this.now, this.client.due);
      sent.push(...this.take(this.client.tick(this.now)));
    }
    this.now = end;
    return sent;
  }
}
