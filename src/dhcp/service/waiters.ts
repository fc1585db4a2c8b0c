/** Those who wait for an attachment's leases: the callers of ADD. */
import type { Answer } from "../order.ts";
import type { Waiter } from "./surroundings.ts";

export class Waiters {
  private readonly all = new Set<Waiter>();

  get isEmpty(): boolean {
    return this.all.size === 0;
  }

  /** When the first of them gives up. */
  get due(): number {
    let due = Infinity;
    for (const { deadline } of this.all) due = Math.min(due, deadline);
    return due;
  }

  add(waiter: Waiter): void {
    this.all.add(waiter);
  }

  /** Answers whether it was the last one. */
  forget(waiter: Waiter): boolean {
    return this.all.delete(waiter) && this.isEmpty;
  }

  answerAll(answer: Answer): void {
    this.answerDue(Infinity, () => answer);
  }

  /** Those who give up. */
  answerDue(now: number, answer: () => Answer): void {
    for (const waiter of this.all) {
      if (now < waiter.deadline) continue;
      this.all.delete(waiter);
      waiter.answer(answer());
    }
  }
}
