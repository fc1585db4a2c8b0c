/** The least time between two attempts: what cannot start does not keep a processor busy. */
export class Pause {
  private until = 0;

  constructor(private readonly now = () => performance.now()) {}

  /** A pause that has been begun, and ends later, goes on. */
  begin(ms: number, since = this.now()): void {
    this.until = Math.max(this.until, since + ms);
  }

  /** 0 when there is none. */
  get leftMs(): number {
    return Math.max(this.until - this.now(), 0);
  }
}
