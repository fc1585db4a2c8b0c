/**
 * Who this host is in the cluster, and which blocks it may give addresses out of. ADD and DEL read what is served; nothing
 * here is on their way.
 *
 * Two delays make it safe: a connected agent notices what concerns it within `notice`, and nothing is served until
 * `ripening` has passed since anything was in doubt, which is more than twice as long and a restart.
 */
import {
  type BootNotes,
  type Grant,
  type KeptState,
  MOST_ATTEMPTS,
  now,
  putRecord,
  readStored,
  type Steps,
  StoreSilent,
  usedBlocks,
} from "./effects.ts";
import { ALARM_KEY, type AlarmRecord, nodeKey, type NodeRecord, type Stored } from "./records.ts";

export interface Self {
  node: string;
  machine: string;
  boot: string;
}

export interface Delays {
  notice: number;
  ripening: number;
}

/** `refused`: the record is another machine's. `contested`: another machine says that it is this node. */
export type Standing = "away" | "joined" | "draining" | "contested" | "refused";

export class ClusterNode {
  standing: Standing = "away";
  /** Since when nothing has been in doubt; undefined while something is. */
  quietSince?: number;
  /** Blocks that are another node's, although containers here have addresses of them: a person has to decide. */
  readonly conflicts = new Map<string, string>();
  /** Pools of which nothing could be claimed, because somebody has blocks of an earlier one of that name. */
  readonly earlierPools = new Set<string>();
  /** As it was read last. */
  private record?: Stored<NodeRecord>;

  constructor(
    readonly self: Self,
    readonly delays: Delays,
    public held: KeptState,
    public notes: BootNotes,
  ) {}

  /** At each start of the agent, and with each connection. */
  *join(): Steps<void> {
    this.quietSince = undefined;
    yield* this.confirm();
    this.quietSince = yield* now();
  }

  /** Whether the record was mine already, as I know it. */
  *confirm(): Steps<boolean> {
    const key = nodeKey(this.self.node);
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const found = yield* readStored<NodeRecord>(key), wanted = yield* this.recordFor(found);
      if (wanted === undefined) {
        this.record = found;
        yield* this.accept(found!.value);
        return attempt === 0;
      }
      if (wanted === "refused") {
        this.standing = "refused";
        return false;
      }
      const written = yield* putRecord(key, found, wanted);
      if (typeof written === "object") {
        this.record = written.won;
        yield* this.accept(wanted);
        return false;
      }
      if (written === "refused") throw new StoreSilent(`${key} cannot be written`);
    }
    throw new StoreSilent(`${key} changes again and again`);
  }

  /** What the record has to be: undefined where it is that already. */
  private *recordFor(found: Stored<NodeRecord> | undefined): Steps<NodeRecord | "refused" | undefined> {
    const { machine, boot } = this.self, { generation } = this.held;
    const fresh = (number: number): NodeRecord => ({ generation: number, machine, boot, state: "joined" });
    if (found === undefined) {
      if (generation > 0) yield* this.alarm(`the record of ${this.self.node} is gone`);
      return fresh(Math.max(1, generation));
    }
    const { value } = found;
    if (value.machine !== machine) return "refused";
    if (value.generation < generation) {
      yield* this.alarm(`the record of ${this.self.node} is that of an earlier time`);
      return fresh(generation);
    }
    if (value.state === "off") {
      if ((yield* usedBlocks()).length > 0) return { ...value, state: "joined", boot };
      yield* this.forgetGrants();
      return fresh(value.generation + 1);
    }
    if (value.boot === boot) return undefined;
    const isSomebodyElse = this.notes.hasJoined && !this.held.boots.includes(value.boot);
    if (!isSomebodyElse) return { ...value, boot };
    return value.isContested ? undefined : { ...value, isContested: true };
  }

  private *accept({ generation, state, isContested, boot }: NodeRecord): Steps<void> {
    const isWiped = this.notes.hasJoined && this.held.generation === 0;
    const isKnown = this.held.boots.includes(this.self.boot) && this.held.generation === generation && !isWiped;
    if (!isKnown && boot === this.self.boot) {
      // Blocks of an earlier generation are dead. With the boot before, the containers ended of which nobody knows.
      const own = this.held.generation === generation ? this.held.grants : [];
      const isNewBoot = !this.held.boots.includes(this.self.boot);
      const grants = own.map((grant): Grant =>
        isNewBoot && grant.state === "unknown" ? { ...grant, state: "held" } : grant
      );
      const boots = [...new Set([...this.held.boots, this.self.boot])];
      const wipedIn = isWiped ? this.self.boot : this.held.wipedIn;
      yield* this.save({ ...this.held, generation, boots, grants, wipedIn });
    }
    if (!this.notes.hasJoined) yield* this.note({ ...this.notes, hasJoined: true });
    this.standing = isContested ? "contested" : state === "draining" ? "draining" : "joined";
  }

  private *forgetGrants(): Steps<void> {
    yield* this.note({ ...this.notes, ripe: [] });
    yield* this.save({ ...this.held, grants: [] });
  }

  /** Who sees the first sign that the store has lost something says so: nothing ripens until a person has looked. */
  *alarm(saw: string): Steps<void> {
    this.quietSince = undefined;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const found = yield* readStored<AlarmRecord>(ALARM_KEY);
      if (found !== undefined) return;
      const written = yield* putRecord<AlarmRecord>(ALARM_KEY, undefined, { by: this.self.node, saw });
      if (typeof written === "object") return;
    }
    throw new StoreSilent("the alarm cannot be written");
  }

  *alarmBirth(): Steps<string | undefined> {
    return (yield* readStored<AlarmRecord>(ALARM_KEY))?.birth;
  }

  /**
   * After it has looked at all of its blocks: whether the alarm may be taken away depends on everybody. `since`: the birth of
   * the alarm before it looked, because one that was raised meanwhile may be about what it has not seen.
   */
  *report(since: string | undefined): Steps<void> {
    const { record } = this;
    // Two machines with one name would write over what the other says.
    if (record === undefined || record.value.boot !== this.self.boot) return;
    const conflicts = [...this.conflicts.keys()].sort();
    const { heard, conflicts: known = [], ...value } = record.value;
    if (heard === since && JSON.stringify(known) === JSON.stringify(conflicts)) return;
    if ((yield* this.alarmBirth()) !== since) return;
    const written = yield* putRecord<NodeRecord>(record.key, record, {
      ...value,
      ...since !== undefined && { heard: since },
      ...conflicts.length > 0 && { conflicts },
    });
    // What was lost or not answered is looked at again with the next verification.
    if (typeof written === "object") this.record = written.won;
  }

  /** Known only when it is on the disk: what could not be written has not been decided. */
  *save(held: KeptState): Steps<void> {
    yield { does: "save", held };
    this.held = held;
  }

  *note(notes: BootNotes): Steps<void> {
    yield { does: "note", boot: notes };
    this.notes = notes;
  }

  isServed({ state, claim }: Grant): boolean {
    return state === "held" && this.notes.ripe.includes(claim);
  }

  *keepGrant(grant: Grant): Steps<void> {
    const others = this.held.grants.filter(({ key }) => key !== grant.key);
    yield* this.save({ ...this.held, grants: [...others, grant] });
  }

  /** Should the store show its claim once more, it has to ripen anew. */
  *dropGrant({ key, claim }: Grant): Steps<void> {
    yield* this.note({ ...this.notes, ripe: this.notes.ripe.filter((each) => each !== claim) });
    yield* this.save({ ...this.held, grants: this.held.grants.filter((each) => each.key !== key) });
  }

  /** Whether this node may claim, ripen and release: it is who it says, as far as the store knows. */
  get isSound(): boolean {
    return this.standing === "joined" || this.standing === "draining";
  }
}
