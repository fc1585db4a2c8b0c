/**
 * A model of claims.ts and blocks.ts: every order in which processes can take the steps, with a crash possible before
 * each. Two of our processes and Go's plugin share two addresses. In each state nobody's address has been taken away,
 * and after each DEL nothing of the owner is left.
 *
 * The model shows that the order of steps is right, not that the code takes them. Steps have the numbers of
 * docs/lease-store.md. The model also runs with mistakes in it, to show that it finds them.
 *
 * Longer than 300 lines: the state, the steps and the checks are one model.
 */
import { describe, expect, test } from "bun:test";

const ADDRESSES = 2;
const OURS = [1, 2];
const GO = 3;
/** The tag of an empty file's text. */
const EMPTY = 9;

interface File {
  /** Writing goes to the file that was opened, also when its name is gone or another's by then. */
  maker: number;
  /** 0 while empty. */
  says: number;
}

interface Process {
  owner: number;
  at: string;
  /** Which address the current step is about. */
  index: number;
  /** Whether the search goes on after everything was settled. */
  settled: boolean;
}

interface State {
  slots: number[];
  claiming: boolean[];
  files: (File | null)[];
  /** Byte 0: who shares it, and who has it alone. */
  sharing: number[];
  alone: number;
  /** The bytes of owners, and Go's lock: who has them. */
  owners: Record<number, number>;
  goLock: number;
  /** What each owner was told he has, and has not begun to give back. */
  acknowledged: Record<number, number>;
  processes: Process[];
}

interface Mistakes {
  /** Makes a lease file without O_EXCL. */
  overwrites?: boolean;
  /** Looks at files and removes them without Go's lock. */
  ignoresGo?: boolean;
  /** Settles what others are in the middle of. */
  settlesInCompany?: boolean;
}

const start = (owner: number): Process => ({
  owner,
  at: owner === GO ? "go: begin" : "begin",
  index: 0,
  settled: false,
});

function initial(): State {
  return {
    slots: [0, 0],
    claiming: [false, false],
    files: [null, null],
    sharing: [],
    alone: 0,
    owners: {},
    goLock: 0,
    acknowledged: {},
    processes: [...OURS, GO].map(start),
  };
}

/** Takes the process's next step in the state; answers false when it has to wait. */
function step(s: State, me: Process, wrong: Mistakes): boolean {
  const { owner, index: i } = me;
  const go = (at: string, index = i) => {
    me.at = at;
    me.index = index;
    return true;
  };
  const file = s.files[i];
  const tagOf = (says: number) => (says === 0 ? EMPTY : says);
  const release = () => {
    s.sharing = s.sharing.filter((each) => each !== owner);
    if (s.alone === owner) s.alone = 0;
    if (s.owners[owner] === owner) delete s.owners[owner];
    if (s.goLock === owner) s.goLock = 0;
  };
  const lockGo = () => wrong.ignoresGo || (s.goLock === 0 && (s.goLock = owner) !== 0);
  const unlockGo = () => {
    if (s.goLock === owner) s.goLock = 0;
  };

  switch (me.at) {
    // Locks, for ADD of who has nothing and DEL of who has something.
    case "begin":
      if (s.owners[owner] !== undefined) return false;
      s.owners[owner] = owner;
      me.settled = false;
      return go("share");
    case "share":
      if (s.alone !== 0) return false;
      s.sharing.push(owner);
      if (s.acknowledged[owner] === undefined) return go("add: own", 0);
      delete s.acknowledged[owner];
      return go("del: find", 0);

    // ADD: leases it has already are refused, remains of a crash are cleared.
    case "add: own":
      if (i === ADDRESSES) return go("add: search", 0);
      if (s.slots[i] !== owner) return go("add: own", i + 1);
      return go("add: own file");
    case "add: own file":
      if (file?.says === owner) return go("refused");
      if (file !== null) return go("add: own", i + 1);
      return go("add: clear own");
    case "add: clear own":
      if (s.slots[i] === owner) s.slots[i] = 0;
      s.claiming[i] = false;
      return go("add: own", i + 1);
    case "refused":
      // There was a lease of a process that died after the file was written: DEL takes it away.
      release();
      s.acknowledged[owner] = -1;
      return go("begin");

    case "add: search":
      if (i === ADDRESSES) return me.settled ? go("exhausted") : go("add: leave");
      if (s.slots[i] !== 0) return go("add: search", i + 1);
      return go("add 1: take slot");
    case "add 1: take slot":
      if (s.slots[i] !== 0) return go("add: search", i + 1);
      s.slots[i] = owner;
      return go("add 2: mark");
    case "add 2: mark":
      s.claiming[i] = true;
      return go("add 3: make file");
    case "add 3: make file":
      if (file !== null && !wrong.overwrites) return go("adopt");
      s.files[i] = { maker: owner, says: 0 };
      return go("add 4: write file");
    case "add 4: write file":
      if (file?.maker === owner) file.says = owner;
      return go("add 5: clear mark");
    case "add 5: clear mark":
      s.claiming[i] = false;
      return go("add 6: answer");
    case "add 6: answer":
      release();
      s.acknowledged[owner] = i;
      return go("begin");
    case "adopt":
      s.slots[i] = file === null ? 0 : tagOf(file!.says);
      s.claiming[i] = false;
      return go("add: search", i + 1);
    case "exhausted":
      release();
      return go("begin");

    // Everything is settled by who is alone, and then searched once more.
    case "add: leave":
      s.sharing = s.sharing.filter((each) => each !== owner);
      return go("add: be alone");
    case "add: be alone":
      if (wrong.settlesInCompany) return go("settle", 0);
      if (s.sharing.length > 0 || s.alone !== 0) return false;
      s.alone = owner;
      return go("settle", 0);
    case "settle":
      if (i === ADDRESSES) {
        me.settled = true;
        return go("add: search", 0);
      }
      if ((s.slots[i] !== 0) === (file !== null) && s.slots[i] !== EMPTY && !s.claiming[i]) {
        return go("settle", i + 1);
      }
      return go(file?.says === 0 ? "settle: lock" : "settle: write");
    case "settle: lock":
      return lockGo() && go("settle: look again");
    case "settle: look again":
      return file?.says === 0 ? go("settle: remove") : go("settle: write");
    case "settle: remove":
      s.files[i] = null;
      return go("settle: write");
    case "settle: write":
      unlockGo();
      s.slots[i] = file === null ? 0 : tagOf(file!.says);
      s.claiming[i] = false;
      return go("settle", i + 1);

    // DEL
    case "del: find":
      if (i === ADDRESSES) return go("del: everywhere", 0);
      if (s.slots[i] !== owner) return go("del: find", i + 1);
      return go("del 1: lock");
    case "del 1: lock":
      return lockGo() && go("del 1: look");
    case "del 1: look":
      if (file?.says === owner) return go("del 1: remove");
      unlockGo();
      if (file?.says === 0) return go("del: leave");
      return go("del 3: give up slot");
    case "del 1: remove":
      s.files[i] = null;
      unlockGo();
      return go("del 3: give up slot");
    case "del 3: give up slot":
      if (s.slots[i] === owner) s.slots[i] = file === null || file!.says === owner ? 0 : tagOf(file!.says);
      s.claiming[i] = false;
      return go("del: find", i + 1);
    case "del: leave":
      s.sharing = s.sharing.filter((each) => each !== owner);
      return go("del: be alone");
    case "del: be alone":
      if (s.sharing.length > 0 || s.alone !== 0) return false;
      s.alone = owner;
      return go("del: lock empty");
    case "del: lock empty":
      return lockGo() && go("del: remove empty");
    case "del: remove empty":
      if (file?.says === 0) s.files[i] = null;
      unlockGo();
      if (s.alone === owner) {
        s.alone = 0;
        s.sharing.push(owner);
      }
      return go("del 3: give up slot");
    case "del: everywhere":
      // Where Go's plugin works too, files are looked through that the index does not know of.
      if (i === ADDRESSES) return go("del: done");
      return file?.says === owner ? go("del: everywhere, lock") : go("del: everywhere", i + 1);
    case "del: everywhere, lock":
      return lockGo() && go("del: everywhere, remove");
    case "del: everywhere, remove":
      if (file?.says === owner) s.files[i] = null;
      unlockGo();
      return go("del: everywhere", i + 1);
    case "del: done":
      release();
      if (s.files.some((each) => each?.says === owner)) throw new Error(`a lease of ${owner} is left after DEL`);
      if (s.slots.includes(owner)) throw new Error(`a slot of ${owner} is left after DEL`);
      return go("begin");

    // Go's plugin: everything under its lock.
    case "go: begin":
      if (s.goLock !== 0) return false;
      s.goLock = GO;
      if (s.acknowledged[GO] === undefined) return go("go: make file", 0);
      delete s.acknowledged[GO];
      return go("go: remove", 0);
    case "go: make file":
      if (i === ADDRESSES) return go("go: end");
      if (file !== null) return go("go: make file", i + 1);
      s.files[i] = { maker: GO, says: 0 };
      return go("go: write file");
    case "go: write file":
      if (file?.maker === GO) file.says = GO;
      s.acknowledged[GO] = i;
      return go("go: end");
    case "go: remove":
      if (i === ADDRESSES) return go("go: end");
      if (file?.says === GO) s.files[i] = null;
      return go("go: remove", i + 1);
    case "go: end":
      release();
      return go("go: begin");
  }
  throw new Error(`no step ${me.at}`);
}

function check({ acknowledged, files }: State): void {
  for (const [owner, index] of Object.entries(acknowledged)) {
    if (index >= 0 && files[index]?.says !== Number(owner)) {
      throw new Error(`owner ${owner} has address ${index}, whose file says ${files[index]?.says ?? "nothing"}`);
    }
  }
}

/** Visits every state that can be reached; answers how many there are. */
function explore({ wrong = {}, crashes, limit }: { wrong?: Mistakes; crashes: number; limit: number }): number {
  const first = initial();
  const seen = new Set([keyOf(first, crashes)]);
  const queue: [State, number][] = [[first, crashes]];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [state, left] = next;
    const visit = (s: State, left: number) => {
      s.sharing.sort();
      check(s);
      const name = keyOf(s, left);
      if (seen.has(name)) return;
      seen.add(name);
      queue.push([s, left]);
    };
    for (const which of state.processes.keys()) {
      const after = copyOf(state);
      if (step(after, after.processes[which]!, wrong)) visit(after, left);
      const { owner, at } = state.processes[which]!;
      if (left === 0 || at === "begin" || owner === GO) continue;
      // The process dies before its step: the kernel drops its locks, and the engine calls DEL for its container.
      const dead = copyOf(state);
      dead.processes[which] = start(owner);
      dead.sharing = dead.sharing.filter((each) => each !== owner);
      if (dead.alone === owner) dead.alone = 0;
      delete dead.owners[owner];
      if (dead.goLock === owner) dead.goLock = 0;
      dead.acknowledged[owner] = -1;
      visit(dead, left - 1);
    }
    if (seen.size > limit) throw new Error(`more than ${limit} states`);
  }
  return seen.size;
}

function keyOf(s: State, left: number): string {
  const files = s.files.map((file) => file && `${file.maker}:${file.says}`);
  const processes = s.processes.map(({ at, index, settled }) => `${at} ${index} ${settled}`);
  const { 1: one, 2: two, 3: three } = s.acknowledged;
  return [left, s.slots, s.claiming, files, s.sharing, s.alone, s.goLock, one, two, three, ...processes].join("/");
}

function copyOf(s: State): State {
  return {
    ...s,
    slots: [...s.slots],
    claiming: [...s.claiming],
    files: s.files.map((file) => file && { ...file }),
    sharing: [...s.sharing],
    owners: { ...s.owners },
    acknowledged: { ...s.acknowledged },
    processes: s.processes.map((process) => ({ ...process })),
  };
}

test("no order of steps takes an address from its owner, and none leaves something behind DEL", () => {
  const states = explore({ crashes: 0, limit: 3_000_000 });
  expect(states).toBeGreaterThan(1000);
  console.log(`${states} states`);
}, 300_000);

test("nor does a crash", () => {
  const states = explore({ crashes: 1, limit: 3_000_000 });
  expect(states).toBeGreaterThan(1000);
  console.log(`${states} states with a crash`);
}, 300_000);

describe("the model finds", () => {
  const mistakes: [string, Mistakes][] = [
    ["a lease file made without O_EXCL", { overwrites: true }],
    ["an empty file removed while somebody may be writing it", { settlesInCompany: true }],
    ["a file removed without Go's lock", { ignoresGo: true }],
  ];
  test.each(mistakes)("%s", (_, wrong) => {
    expect(() => explore({ wrong, crashes: 1, limit: 3_000_000 })).toThrow(/has address|is left after/);
  }, 300_000);
});
