/** When a resident ends that serves nobody: `serve --idle`. */
export class IdleLimit {
  private calls = 0;
  private since: number;

  /** 0: never. */
  constructor(private readonly seconds: number, private readonly now = () => performance.now()) {
    this.since = now();
  }

  /** How many calls it has served so far. */
  note(calls: number): void {
    if (calls === this.calls) return;
    this.calls = calls;
    this.since = this.now();
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  get leftMs(): number {
    return this.seconds === 0 ? Infinity : this.since + this.seconds * 1000 - this.now();
  }

  get text(): string {
    return `no call served for ${this.seconds} s; the resident ends, and the next call starts one where that is set up`;
  }
}
