/**
 * A world in which the protocol of src/cluster runs: machines that lose their power, their connection and their disk, a
 * store whose answers come late or not at all, persons who delete and restore, copied disks. Each address may be in use
 * once.
 *
 * Longer than 300 lines: it is one world.
 */
import {
  claimBlock,
  claimThis,
  type PoolOfBlocks,
  releaseBlock,
  ripenBlock,
  verifyNode,
} from "../../src/cluster/blocks.ts";
import {
  type BootNotes,
  type ClusterEffect,
  type ClusterRecord,
  type KeptState,
  putRecord,
  StoreSilent,
} from "../../src/cluster/effects.ts";
import { alarmObstacles } from "../../src/cluster/findings.ts";
import { ClusterNode, type Self } from "../../src/cluster/node.ts";
import {
  ALARM_KEY,
  type AlarmRecord,
  type BlockRecord,
  nameIn,
  nodeKey,
  type NodeRecord,
  type Stored,
} from "../../src/cluster/records.ts";
import { freeBlocksOf, markOff, markUnrecordedOff } from "../../src/cluster/removal.ts";
import { becomeNode } from "../../src/cluster/replacement.ts";

export interface Scenario {
  /** Copies of a machine's disk in another machine: with its fingerprint, or with one of its own. */
  clones?: "same" | "other";
  deletes?: boolean;
  /** An old state of the store comes back: as the page says it, with an alarm; or under running servers. */
  restores?: "with an alarm" | "unsaid";
}

type Random = () => number;

const NOTICE = 2, RIPENING = 10, TIME_TO_OBJECT = 90;
const POOL: PoolOfBlocks = { name: "p", birth: "1", size: 4 };
const NOTHING_HELD: KeptState = { generation: 0, boots: [], grants: [], seen: 0 };
const NOTHING_NOTED: BootNotes = { hasJoined: false, ripe: [] };

interface Machine {
  node: string;
  fingerprint: string;
  boot: number;
  isOn: boolean;
  isCut: boolean;
  held: KeptState;
  notes: BootNotes;
  /** Blocks of which a container has the address. */
  used: Set<string>;
  agent?: Agent;
  /** When an agent that can has to be running, connected and up to date again. */
  due: number;
  /** How often something has concerned it. */
  concerns: number;
}

interface Agent {
  node: ClusterNode;
  work: Generator<ClusterEffect, void, unknown>;
  answer: unknown;
  /** The number of the concern up to which it has looked. */
  verified: number;
}

/** A person says that the machine is the node from now on. */
interface Replacement {
  machine: Machine;
  /** It serves the node's blocks, or has containers with their addresses. */
  keeps: boolean;
  before: NodeRecord;
}

interface Snapshot {
  records: Map<string, Stored<ClusterRecord>>;
  revision: number;
}

export class World {
  private time = 0;
  private revision = 1;
  private births = 0;
  private claims = 0;
  private records = new Map<string, Stored<ClusterRecord>>();
  private late: (() => void)[] = [];
  private snapshot?: Snapshot;
  private readonly machines: Machine[];
  private readonly removals: { node: string; freeAt: number; isUnrecorded?: true; by?: Replacement }[] = [];
  readonly log: string[] = [];
  /** How often a container got an address. */
  uses = 0;
  recoveries = 0;
  replacements = 0;

  constructor(private readonly random: Random, private readonly scenario: Scenario) {
    this.machines = ["n1", "n2", "n3"].map((node) => this.newMachine(node, `m-${node}`));
  }

  private newMachine(node: string, fingerprint: string): Machine {
    return {
      node,
      fingerprint,
      boot: 1,
      isOn: true,
      isCut: false,
      held: NOTHING_HELD,
      notes: NOTHING_NOTED,
      used: new Set(),
      due: NOTICE,
      concerns: 1,
    };
  }

  private below(count: number): number {
    return Math.floor(this.random() * count);
  }

  private one<T>(all: readonly T[]): T | undefined {
    return all[this.below(all.length)];
  }

  /** The first address that two machines use, or nothing. */
  walk(steps: number): string | undefined {
    for (let step = 0; step < steps; step++) {
      this.step();
      const twice = this.usedTwice();
      if (twice !== undefined) return twice;
    }
    return undefined;
  }

  private usedTwice(): string | undefined {
    const seen = new Set<string>();
    for (const { used } of this.machines) {
      for (const key of used) {
        if (seen.has(key)) return key;
        seen.add(key);
      }
    }
    return undefined;
  }

  private step(): void {
    const machine = this.one(this.machines)!, kind = this.below(100);
    if (kind < 45) this.runAgent(machine, 1 + this.below(20));
    else if (kind < 65) this.passTime(1 + this.below(6));
    else if (kind < 80) this.attach(machine);
    else if (kind < 86) this.detach(machine);
    else if (kind < 90) this.late.splice(this.below(this.late.length), 1)[0]?.();
    else if (kind < 92) this.cut(machine);
    else if (kind < 93) this.crash(machine);
    else if (kind < 95) this.power(machine);
    else if (kind < 96) this.below(3) === 0 && this.wipe(machine);
    else if (kind < 98) this.remove(machine);
    else this.mishap();
  }

  private mishap(): void {
    const { clones, deletes, restores } = this.scenario;
    const [first] = this.machines;
    if (clones !== undefined && this.machines.length === 3 && this.below(4) === 0) {
      const copy = this.newMachine(first!.node, clones === "same" ? first!.fingerprint : "m-copy");
      // A copy has boots of its own.
      Object.assign(copy, { held: first!.held, boot: 1000, due: this.time + NOTICE });
      this.machines.push(copy);
      this.note(`the disk of n1 is copied into ${copy.fingerprint}`);
    } else if (clones !== undefined) this.replace(this.one([first!, this.machines.at(-1)!])!);
    if (deletes) {
      const key = this.one([...this.records.keys()].filter((each) => each !== ALARM_KEY));
      if (key !== undefined) this.deleteByPerson(key);
    }
    if (restores) {
      if (this.snapshot === undefined) {
        this.snapshot = { records: new Map(this.records), revision: this.revision };
        this.note("a snapshot");
      } else if (this.below(3) === 0) this.restore(this.snapshot);
      else this.recover();
    }
  }

  /** A person takes the alarm away when everybody has been heard of, and there is no conflict. */
  private recover(): void {
    const alarm = this.records.get(ALARM_KEY) as Stored<AlarmRecord> | undefined;
    if (alarm === undefined) return;
    const nodes = this.listed("node/") as Stored<NodeRecord>[],
      blocks = this.listed("block/") as Stored<BlockRecord>[];
    const byName = new Map(nodes.map(({ key, value }) => [nameIn(key), value]));
    const open = alarmObstacles(alarm, { pools: new Map(), nodes: byName, blocks, problems: [] });
    // The store may have lost a node's record, too: persons know their machines.
    const isLost = ({ node, held, used }: Machine) => (held.generation > 0 || used.size > 0) && !byName.has(node);
    if (open.length > 0 || this.machines.some(isLost)) return;
    this.records.delete(ALARM_KEY);
    this.recoveries++;
    this.note("the alarm is taken away");
  }

  /** What somebody owns only goes when its owner gives it up (a finalizer). */
  private deleteByPerson(key: string): void {
    this.note(`${key} is deleted`);
    const record = this.records.get(key)!;
    if (isKept(record)) this.records.set(key, { ...record, isGoing: true, version: ++this.revision });
    else this.records.delete(key);
    this.tell(key);
  }

  /** The servers are stopped meanwhile: every connection ends, and requests on their way are lost. */
  private restore({ records, revision }: Snapshot): void {
    this.note("the store is restored");
    this.records = new Map(records);
    this.revision = revision;
    if (this.scenario.restores === "with an alarm") {
      this.byPerson(putRecord(ALARM_KEY, undefined, { by: "a person", saw: "" }));
    }
    this.late = [];
    for (const machine of this.machines) {
      machine.agent = undefined;
      this.concern(machine);
    }
  }

  private note(text: string): void {
    this.log.push(`${this.time} ${text}`);
  }

  /** Who is concerned notices in time, unless it is cut off. */
  private tell(key: string): void {
    for (const machine of this.machines) {
      const isOwn = key === `node/${machine.node}` || machine.held.grants.some((grant) => grant.key === key);
      if (isOwn) this.concern(machine);
    }
  }

  private concern(machine: Machine): void {
    machine.concerns++;
    machine.due = Math.min(machine.due, this.time + NOTICE);
  }

  private passTime(span: number): void {
    const end = this.time + span;
    while (this.time < end) {
      this.time++;
      for (const machine of this.machines) {
        for (let turn = 0; turn < 500 && this.isBehind(machine); turn++) this.runAgent(machine, 1, true);
      }
    }
    for (const removal of this.removals.splice(0)) {
      if (removal.freeAt > this.time) this.removals.push(removal);
      else if (removal.by !== undefined) this.replaced(removal.by);
      else this.free(removal.node, removal.isUnrecorded === true);
    }
  }

  private free(node: string, isUnrecorded: boolean): void {
    const generations = [...this.records.values()].flatMap(({ value }) =>
      "index" in value && value.owner?.node === node ? [value.owner.generation] : []
    );
    if (isUnrecorded && this.byPerson(markUnrecordedOff(node, Math.max(1, ...generations))) !== "done") return;
    this.byPerson(freeBlocksOf(node, POOL.name));
  }

  private isBehind({ isOn, isCut, due }: Machine): boolean {
    return isOn && !isCut && due <= this.time;
  }

  private attach(machine: Machine): void {
    if (!machine.isOn) return;
    const { held, notes } = machine;
    const served = held.grants.filter(({ state, claim, key }) =>
      state === "held" && notes.ripe.includes(claim) && !machine.used.has(key)
    );
    const grant = this.one(served);
    if (grant === undefined) return;
    machine.used.add(grant.key);
    this.uses++;
    this.note(`${machine.fingerprint} uses ${grant.key}`);
  }

  private detach(machine: Machine): void {
    const key = this.one([...machine.used]);
    if (key !== undefined) machine.used.delete(key);
  }

  private cut(machine: Machine): void {
    // The stated hole: a copy with the same fingerprint, while the original cannot object.
    if (this.scenario.clones === "same" && machine.node === "n1") return;
    // Another: what is lost in a restore, and known by nobody who is there.
    if (this.scenario.restores === "unsaid") return;
    machine.isCut = !machine.isCut;
    machine.agent = undefined;
    machine.due = this.time + NOTICE;
    machine.concerns++;
    this.note(`${machine.fingerprint} is ${machine.isCut ? "cut off" : "connected"}`);
  }

  private crash(machine: Machine): void {
    machine.agent = undefined;
    this.concern(machine);
  }

  private power(machine: Machine): void {
    this.note(`${machine.fingerprint} is switched ${machine.isOn ? "off" : "on"}`);
    if (machine.isOn) {
      Object.assign(machine, { isOn: false, agent: undefined, notes: NOTHING_NOTED });
      machine.used.clear();
    } else Object.assign(machine, { isOn: true, boot: machine.boot + 1, due: this.time + NOTICE });
  }

  /** Leases go with it, the ledgers of this boot do not. */
  private wipe(machine: Machine): void {
    this.note(`the state directory of ${machine.fingerprint} is emptied`);
    machine.held = NOTHING_HELD;
    this.crash(machine);
  }

  /** The person is right: the machine is off now. */
  private remove({ isOn, node }: Machine): void {
    if (isOn || this.machines.some((other) => other.node === node && other.isOn)) return;
    const marked = this.byPerson(markOff(node)), freeAt = this.time + TIME_TO_OBJECT;
    this.note(`${node} is removed`);
    this.removals.push({ node, freeAt, ...marked === "unknown node" && { isUnrecorded: true } });
  }

  /** The person is right: the other machine is off now. As src/services/node/operator/replacement.ts does it. */
  private replace(machine: Machine): void {
    const { node, fingerprint, held, notes, used, isOn } = machine;
    const record = this.records.get(nodeKey(node))?.value as NodeRecord | undefined;
    if (
      !isOn || record === undefined || this.machines.some((one) => one !== machine && one.node === node && one.isOn)
    ) return;
    if (record.machine === fingerprint && !record.isContested) return;
    const keeps = used.size > 0 ||
      held.grants.some(({ state, claim }) => state === "held" && notes.ripe.includes(claim));
    this.note(`${fingerprint} replaces ${node}`);
    this.replacements++;
    if (keeps && record.machine === fingerprint) return void this.byPerson(becomeNode(selfOf(machine), {}));
    this.byPerson(markOff(node));
    this.removals.push({ node, freeAt: this.time + TIME_TO_OBJECT, by: { machine, keeps, before: record } });
  }

  private replaced({ machine, keeps, before }: Replacement): void {
    const now = this.records.get(nodeKey(machine.node))?.value as NodeRecord | undefined, self = selfOf(machine);
    const isSelf = now?.machine === self.machine && now.boot === self.boot && now.generation > before.generation;
    if (now === undefined || now.state !== "off" && !isSelf) return;
    if (!keeps) this.byPerson(freeBlocksOf(machine.node, POOL.name));
    const state = !keeps ? "off" : before.state === "draining" ? "draining" : "joined";
    if (!isSelf) this.byPerson(becomeNode(self, { state, after: "off" }));
  }

  private byPerson<Result>(work: Generator<ClusterEffect, Result, unknown>): Result {
    let { value, done } = work.next();
    while (!done) ({ value, done } = work.next(this.atStore(value as ClusterEffect)));
    return value as Result;
  }

  private runAgent(machine: Machine, effects: number, isPunctual = false): void {
    if (!machine.isOn) return;
    machine.agent ??= this.newAgent(machine);
    for (let count = 0; count < effects && machine.agent !== undefined; count++) this.runEffect(machine, isPunctual);
  }

  private newAgent(machine: Machine): Agent {
    const node = new ClusterNode(
      selfOf(machine),
      { notice: NOTICE, ripening: RIPENING },
      machine.held,
      machine.notes,
    );
    return { node, work: this.program(machine, node), answer: undefined, verified: 0 };
  }

  /** What an agent does again and again, in any order. */
  private *program(machine: Machine, node: ClusterNode): Generator<ClusterEffect, void, unknown> {
    yield* node.join();
    for (;;) {
      const agent = machine.agent!, isBehind = agent.verified < machine.concerns, kind = isBehind ? 0 : this.below(8);
      if (kind === 0) {
        const { concerns } = machine;
        yield* verifyNode(node, [POOL]);
        agent.verified = concerns;
        machine.due = machine.concerns > concerns ? this.time + NOTICE : Infinity;
      } else if (kind < 3) {
        if (this.below(4) > 0) yield* claimBlock(node, POOL);
        else yield* claimThis(node, POOL, this.below(POOL.size));
      } else if (kind < 6) {
        const grant = this.one(node.held.grants.filter((each) => !node.notes.ripe.includes(each.claim)));
        if (grant !== undefined) yield* ripenBlock(node, grant);
      } else {
        const grant = this.one(node.held.grants);
        if (grant !== undefined) yield* releaseBlock(node, grant);
      }
      yield { does: "look at the clock" };
    }
  }

  private runEffect(machine: Machine, isPunctual: boolean): void {
    const agent = machine.agent!;
    let step: IteratorResult<ClusterEffect, void>;
    try {
      step = agent.answer instanceof StoreSilent ? agent.work.throw(agent.answer) : agent.work.next(agent.answer);
    } catch (error) {
      if (!(error instanceof StoreSilent)) throw error;
      machine.agent = undefined;
      machine.due = Math.min(machine.due, this.time + NOTICE);
      return;
    }
    if (step.done) return;
    agent.answer = this.answer(machine, step.value, isPunctual);
  }

  private answer(machine: Machine, effect: ClusterEffect, isPunctual: boolean): unknown {
    switch (effect.does) {
      case "save":
        machine.held = effect.held;
        return undefined;
      case "note":
        machine.notes = effect.boot;
        return undefined;
      case "look for use":
        return [...machine.used];
      case "look at the clock":
        return this.time;
      case "choose":
        return this.below(effect.among);
      case "name a claim":
        return `c${this.claims++}`;
    }
    if (machine.isCut) return this.unanswered(effect, false);
    if (!isPunctual && this.below(20) === 0) return this.unanswered(effect, this.below(2) === 0);
    return this.atStore(effect);
  }

  /** A put may have been executed, or is executed later. */
  private unanswered(effect: ClusterEffect, wasExecuted: boolean): unknown {
    if (effect.does !== "put") return new StoreSilent("no answer");
    if (wasExecuted) this.atStore(effect);
    else if (this.below(2) === 0) this.late.push(() => void this.atStore(effect));
    return "unknown";
  }

  private listed(start: string): Stored<ClusterRecord>[] {
    return [...this.records.values()].filter(({ key }) => key.startsWith(start));
  }

  private atStore(effect: ClusterEffect): unknown {
    switch (effect.does) {
      case "read":
        return this.records.get(effect.key);
      case "list":
        return {
          blocks: this.listed("block/") as Stored<BlockRecord>[],
          revision: this.revision,
        };
      case "put": {
        const { key, was, value } = effect, now = this.records.get(key);
        if (now?.version !== was?.version || now?.birth !== was?.birth) return "lost";
        const birth = now?.birth ?? String(++this.births);
        const won = { key, value, version: ++this.revision, birth, isGoing: now?.isGoing ?? false };
        if (won.isGoing && !isKept(won)) this.records.delete(key);
        else this.records.set(key, won);
        this.note(`${key} = ${JSON.stringify(value)}`);
        this.tell(key);
        return { won };
      }
      default:
        return undefined;
    }
  }
}

function selfOf({ node, fingerprint, boot }: Machine): Self {
  return { node, machine: fingerprint, boot: `${fingerprint}.${boot}` };
}

function isKept({ value }: Stored<ClusterRecord>): boolean {
  return "index" in value ? value.owner !== undefined : "state" in value && value.state !== "off";
}
