/** One operation of a rule (linux/netfilter/nf_tables.h): what becomes of the packet and of the registers. */
import {
  both,
  type Certainty,
  isAtLeast,
  isAtMost,
  isEqual,
  known,
  type KnownBytes,
  not,
  slice,
  unknown,
  withMask,
} from "./known-bytes.ts";
import { fibOf, hasBytes, masqueraded, metaOf, payloadOf, redirected, withPayload } from "./loads.ts";
import { lookUp, MOST_FOUND } from "./lookup.ts";
import { type PacketFacts, translated } from "./packet.ts";
import type { Comparison, Operation, Register, RuleSet, SetElement, Verdict } from "./ruleset.ts";
import { type Effect, stateBits, xtablesMatch, xtablesTarget } from "./xtables.ts";

/** `reject` answers; `unknown` is that of an operation that is not known here. */
export type RuleVerdict = Verdict | { kind: "reject" | "unknown" };

/** A packet within a rule. */
export interface Branch {
  packet: PacketFacts;
  /** A branch's own: operations write to them. */
  registers: KnownBytes;
  /** The last one that was found in a set, when it can be no other. */
  found?: SetElement;
}

export interface RuleEnd {
  packet: PacketFacts;
  verdict: RuleVerdict;
  /** Which `found` was. */
  element?: SetElement;
}

interface Step {
  /** The rule does not match, for certain or perhaps. */
  mayEnd?: "certainly" | "perhaps";
  ends?: RuleEnd[];
  goesOn?: Branch[];
}

type Does = Operation["does"];
type OperationThat<D extends Does> = Extract<Operation, { does: D }>;
type SetNamed = (name: string) => RuleSet | undefined;
type Steps = { [D in Does]: (branch: Branch, operation: OperationThat<D>, setNamed: SetNamed) => Step };

export function step(operation: Operation, branch: Branch, setNamed: SetNamed): Step {
  const take = steps[operation.does] as (branch: Branch, operation: Operation, setNamed: SetNamed) => Step;
  return take(branch, operation, setNamed);
}

const steps: Steps = {
  payload: (branch, operation) => ({
    ...loaded(branch, operation.into, payloadOf(branch.packet, operation)),
    mayEnd: hasBytes(branch.packet, operation) ? undefined : "perhaps",
  }),
  "set payload": (branch, operation) => {
    const bytes = slice(branch.registers, operation.from, operation.length);
    return changed(branch, withPayload(branch.packet, operation, bytes));
  },
  meta(branch, { key, into }) {
    const value = metaOf(branch.packet, key);
    // Without a socket, for example, there is no user, and the rule does not match.
    return { ...loaded(branch, into, value ?? unknown(16)), mayEnd: value === undefined ? "perhaps" : undefined };
  },
  "set meta": (branch, { key, from }) =>
    key === "mark"
      ? changed(branch, { ...branch.packet, mark: slice(branch.registers, from, 4) })
      : { goesOn: [branch] },
  ct: connectionStep,
  "set ct": (branch, { key, from }) =>
    key === "zone"
      ? changed(branch, { ...branch.packet, state: undefined, status: unknown(4) })
      : key === "mark" && branch.packet.state !== "invalid" && branch.packet.state !== "untracked"
      ? changed(branch, { ...branch.packet, connectionMark: slice(branch.registers, from, 4) })
      : { goesOn: [branch] },
  fib: (branch, operation) => loaded(branch, operation.into, fibOf(branch.packet, operation)),
  compare: (branch, { register, how, value }) => asked(branch, compared(branch.registers, register, how, value)),
  range: (branch, { register, first, last, isInside }) => {
    const bytes = slice(branch.registers, register, first.length);
    const isWithin = both(isAtLeast(bytes, first), isAtMost(bytes, last));
    return asked(branch, isInside ? isWithin : not(isWithin));
  },
  mask: (branch, { from, into, mask, xor }) =>
    loaded(branch, into, withMask(slice(branch.registers, from, mask.length), mask, xor)),
  swap: (branch, { from, into, length, size }) =>
    loaded(branch, into, swapped(slice(branch.registers, from, length), size)),
  lookup: lookupStep,
  put: (branch, { into, value }) => loaded(branch, into, known(value)),
  verdict: ({ packet, found: element }, { verdict }) => ({ ends: [{ packet, verdict, element }] }),
  nat: ({ packet, registers }, { changes, address, port, isFirm }) => {
    const chosen = (register: Register | undefined, length: number) => choice(registers, register, length, isFirm);
    const translation = { address: chosen(address, packet.family === 4 ? 4 : 16), port: chosen(port, 2) };
    return accepted(translated(packet, changes, translation));
  },
  masquerade: ({ packet }) => accepted(masqueraded(packet)),
  redirect: ({ packet, registers }, { port, isFirm }) =>
    accepted(redirected(packet, choice(registers, port, 2, isFirm))),
  reject: ({ packet, found: element }) => ({ ends: [{ packet, verdict: { kind: "reject" }, element }] }),
  notrack: untracked,
  match: (branch, { name, revision, info }) =>
    asked(branch, xtablesMatch(name, revision, info, branch.packet) ?? "maybe"),
  target: (branch, { name, revision, info }) => {
    const effect = xtablesTarget(name, revision, info, branch.packet);
    return effect === undefined ? anything(branch) : effectStep(branch, effect);
  },
  nothing: (branch) => ({ goesOn: [branch] }),
  guess: (branch, { into }) => ({
    goesOn: [into === undefined ? branch : load(branch, into, unknown(16))],
    mayEnd: "perhaps",
  }),
  something: anything,
};

function loaded(branch: Branch, into: Register, value: KnownBytes): Step {
  return { goesOn: [load(branch, into, value)] };
}

/** In full words of the registers: the kernel clears what is behind the value in its last one. */
function load(branch: Branch, into: Register, { value, mask }: KnownBytes): Branch {
  const { registers } = branch, end = Math.min((into + value.length + 3) & ~3, registers.value.length);
  for (let at = into, from = 0; at < end; at++, from++) {
    registers.value[at] = value[from] ?? 0;
    registers.mask[at] = from < mask.length ? mask[from]! : 0xff;
  }
  return branch;
}

function copied(branch: Branch): Branch {
  const { value, mask } = branch.registers;
  return { ...branch, registers: { value: value.slice(), mask: mask.slice() } };
}

/** What a translation takes of a register; of a range, any may be taken. */
function choice(
  registers: KnownBytes,
  register: Register | undefined,
  length: number,
  isFirm: boolean,
): KnownBytes | undefined {
  if (register === undefined) return undefined;
  return isFirm ? slice(registers, register, length) : unknown(length);
}

function changed(branch: Branch, packet: PacketFacts): Step {
  return { goesOn: [{ ...branch, packet }] };
}

function asked(branch: Branch, answer: Certainty): Step {
  if (answer === "no") return { mayEnd: "certainly" };
  return { goesOn: [branch], mayEnd: answer === "maybe" ? "perhaps" : undefined };
}

function accepted(packet: PacketFacts): Step {
  return { ends: [{ packet, verdict: { kind: "accept" } }] };
}

/** One that has a connection keeps it. */
function untracked(branch: Branch): Step {
  return branch.packet.state === "invalid"
    ? changed(branch, { ...branch.packet, state: "untracked" })
    : { goesOn: [branch] };
}

function anything(branch: Branch): Step {
  const packet = {
    ...branch.packet,
    mark: unknown(4),
    connectionMark: unknown(4),
    status: unknown(4),
    state: undefined,
  };
  return {
    mayEnd: "perhaps",
    goesOn: [{ ...branch, packet }],
    ends: [{ packet: branch.packet, verdict: { kind: "unknown" } }],
  };
}

function effectStep(branch: Branch, effect: Effect): Step {
  const { packet } = branch;
  switch (effect.kind) {
    case "nothing":
      return { goesOn: [branch] };
    case "reject":
      return { ends: [{ packet, verdict: { kind: "reject" } }] };
    case "untracked":
      return untracked(branch);
    case "mark":
      return changed(branch, { ...packet, mark: effect.mark });
    case "connection mark":
      return changed(branch, { ...packet, connectionMark: effect.mark });
    case "masquerade":
      return accepted(masqueraded(packet));
    case "redirect":
      return accepted(redirected(packet, effect.port));
    case "nat":
      return accepted(translated(packet, effect.changes, effect));
  }
}

/** Without a connection, only its state can be asked for. */
function connectionStep(branch: Branch, { key, into }: OperationThat<"ct">): Step {
  const { packet } = branch;
  if (key === "state") return loaded(branch, into, stateBits(packet) ?? unknown(4));
  if (packet.state === "untracked" || packet.state === "invalid") return { mayEnd: "certainly" };
  const value = key === "status"
    ? packet.status
    : key === "mark"
    ? packet.connectionMark
    : key === "direction" && packet.state === "new"
    ? known(Uint8Array.of(0))
    : undefined;
  const isCertain = value !== undefined && packet.state !== undefined;
  return { ...loaded(branch, into, value ?? unknown(16)), mayEnd: isCertain ? undefined : "perhaps" };
}

function compared(registers: KnownBytes, from: Register, how: Comparison, value: Uint8Array): Certainty {
  if (how === "==") return isEqual(registers, value, from);
  if (how === "!=") return not(isEqual(registers, value, from));
  const register = slice(registers, from, value.length);
  switch (how) {
    case "<":
      return not(isAtLeast(register, value));
    case "<=":
      return isAtMost(register, value);
    case ">":
      return not(isAtMost(register, value));
    case ">=":
      return isAtLeast(register, value);
  }
}

function swapped({ value, mask }: KnownBytes, size: number): KnownBytes {
  const result = unknown(value.length);
  for (let at = 0; at < value.length; at++) {
    const from = at - at % size + size - 1 - at % size;
    result.value[at] = value[from] ?? 0;
    result.mask[at] = mask[from] ?? 0;
  }
  return result;
}

function lookupStep(branch: Branch, operation: OperationThat<"lookup">, setNamed: SetNamed): Step {
  const { register, isInverted, into } = operation, set = setNamed(operation.set);
  const answer = set === undefined || set.isChanging
    ? undefined
    : lookUp(set, slice(branch.registers, register, set.keyLength));
  const isTooMuch = answer === undefined || answer.elements.length >= MOST_FOUND;
  if (set === undefined || (isTooMuch && into !== undefined)) return anything(branch);
  if (answer === undefined) return asked(branch, "maybe");
  const { elements, mayMiss } = answer;
  const isThere: Certainty = elements.length === 0 ? "no" : mayMiss ? "maybe" : "yes";
  if (into === undefined || isThere === "no") {
    const found = isInverted || elements.length !== 1 ? branch.found : elements[0];
    return asked({ ...branch, found }, isInverted ? not(isThere) : isThere);
  }
  const mayEnd = isThere === "maybe" ? "perhaps" : undefined;
  if (into === "verdict") {
    const ending = elements.filter(({ verdict }) => verdict?.kind !== "continue");
    const goesOn = ending.length < elements.length ? [branch] : [];
    return { mayEnd, ends: ending.map((element) => endBy(element, branch.packet)), goesOn };
  }
  return { mayEnd, goesOn: elements.map((element) => load(copied(branch), into, dataOf(element))) };
}

function endBy(element: SetElement, packet: PacketFacts): RuleEnd {
  const { verdict } = element;
  return { packet, verdict: verdict ?? { kind: "unknown" }, element };
}

function dataOf({ data }: SetElement): KnownBytes {
  return data === undefined ? unknown(4) : known(data);
}
