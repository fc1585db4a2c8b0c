/** The requests of ADD that wait for an attachment's leases. */
import type { Answer } from "../service-protocol.ts";
import type { Client } from "./clients.ts";

export interface PendingRequest {
  deadline: number;
  client: Client;
}

export class PendingRequests {
  private readonly all = new Set<PendingRequest>();

  get isEmpty(): boolean {
    return this.all.size === 0;
  }

  /** The first deadline. */
  get due(): number {
    let due = Infinity;
    for (const { deadline } of this.all) due = Math.min(due, deadline);
    return due;
  }

  add(request: PendingRequest): void {
    this.all.add(request);
  }

  /** Returns whether it was the last one. */
  remove(request: PendingRequest): boolean {
    return this.all.delete(request) && this.isEmpty;
  }

  answerAll(answer: Answer): void {
    this.answerDue(Infinity, () => answer);
  }

  /** Answers those whose time is over. */
  answerDue(now: number, answer: () => Answer): void {
    for (const request of this.all) {
      if (now < request.deadline) continue;
      this.all.delete(request);
      request.client.answer(answer());
    }
  }
}
