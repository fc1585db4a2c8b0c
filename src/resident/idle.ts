/** Ends a resident that nobody calls: `serve --idle`. The next call starts it again where a service manager listens. */
export class Idle {
  private calls = 0;
  private since: number;

  /** 0: never. */
  constructor(private readonly seconds: number, private readonly now = () => performance.now()) {
    this.since = now();
  }

  /** `calls`: how many have come so far. */
  isOver(calls: number): boolean {
    if (calls !== this.calls) {
      this.calls = calls;
      this.since = this.now();
    }
    return this.leftMs <= 0;
  }

  get leftMs(): number {
    return this.seconds === 0 ? Infinity : this.since + this.seconds * 1000 - this.now();
  }

  get text(): string {
    return `no call for ${this.seconds} s; the resident ends, and the next call starts it where a service manager listens`;
  }
}
