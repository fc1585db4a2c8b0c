/** Runs the protocol of src/cluster against a store and this host. One step at a time: what a step has read counts until its end. */
import {
  type BootNotes,
  type ClusterEffect,
  ForeignRecord,
  type KeptState,
  type Steps,
  StoreSilent,
} from "../../cluster/effects.ts";
import { ALARM_KEY, type AlarmRecord, type BlockRecord, type Stored } from "../../cluster/records.ts";
import type { ServedPool } from "../../cluster/served-file.ts";
import type { ClusterStore } from "../../cluster/store.ts";
import { errorText } from "../../cni/error.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";

/** What the protocol asks of this host. */
export interface OnHost {
  save(held: KeptState): void;
  note(notes: BootNotes): void;
  usedBlocks(): readonly string[];
}

export class ProtocolDriver {
  /** As it was read last. */
  alarm: AlarmRecord | undefined;
  /** Since when the store has been silent, and what it said last. */
  silent: ServedPool["silent"];
  /** Why the last put was not done, for people. */
  refusal: string | undefined;
  /** What is in the store and is no record, by pool, as it has been said. */
  private readonly problems = new Map<string, string>();
  /** Blocks that somebody has asked to delete, by pool. */
  readonly going = new Map<string, ReadonlySet<string>>();

  constructor(
    private readonly store: ClusterStore,
    private readonly host: OnHost,
    private readonly agent?: { say(text: string): void },
  ) {}

  async run<Result>(steps: Steps<Result>): Promise<Result> {
    let step = steps.next();
    while (!step.done) {
      let answer: unknown;
      try {
        answer = await this.answer(step.value);
      } catch (error) {
        step = steps.throw(error);
        continue;
      }
      step = steps.next(answer);
    }
    return step.value;
  }

  private async answer(effect: ClusterEffect): Promise<unknown> {
    switch (effect.does) {
      case "save":
        return this.host.save(effect.held);
      case "note":
        return this.host.note(effect.boot);
      case "look for use":
        return this.host.usedBlocks();
      case "look at the clock":
        return preciseSecondsSinceBoot();
      case "choose":
        return crypto.getRandomValues(new Uint32Array(1))[0]! % effect.among;
      case "name a claim":
        return crypto.randomUUID();
      default:
        return await this.asked(() => this.ask(effect));
    }
  }

  /** Asks the store, and notes whether it answers. */
  async asked<T>(question: () => Promise<T>): Promise<T> {
    try {
      const answer = await question();
      this.silent = undefined;
      return answer;
    } catch (error) {
      // It answers, and what one block is does not matter to the others.
      if (error instanceof ForeignRecord && error.key.startsWith("block/")) throw error;
      const silent = error instanceof StoreSilent
        ? error
        : new StoreSilent(`${this.store.name} gave an answer that is none: ${errorText(error)}`);
      this.fellSilent(silent.message);
      throw silent;
    }
  }

  fellSilent(why: string): void {
    this.silent = { since: this.silent?.since ?? Math.floor(preciseSecondsSinceBoot()), why };
  }

  private async ask(effect: Extract<ClusterEffect, { does: "read" | "list" | "put" }>): Promise<unknown> {
    if (effect.does === "read") {
      const found = await this.store.read(effect.key);
      if (effect.key === ALARM_KEY) this.alarm = found?.value as AlarmRecord | undefined;
      return found;
    }
    if (effect.does === "list") {
      const { records, problems, revision } = await this.store.list("block", effect.pool);
      const blocks = records as Stored<BlockRecord>[];
      const said = problems.join("\n");
      if (said !== (this.problems.get(effect.pool) ?? "")) {
        for (const problem of problems) this.agent?.say(problem);
      }
      this.problems.set(effect.pool, said);
      this.going.set(effect.pool, new Set(blocks.filter(({ isGoing }) => isGoing).map(({ key }) => key)));
      return { blocks, revision };
    }
    const outcome = await this.store.put(effect.key, effect.was, effect.value);
    if (effect.key === ALARM_KEY && typeof outcome === "object" && "won" in outcome) {
      this.alarm = effect.value as AlarmRecord;
    }
    if (outcome === "lost" || "won" in outcome) return outcome;
    this.refusal = "unknown" in outcome ? outcome.unknown : outcome.refused;
    if ("unknown" in outcome) return "unknown";
    // An agent's would be refused for every other record, too.
    if (this.agent !== undefined) throw new StoreSilent(outcome.refused);
    return "refused";
  }
}
