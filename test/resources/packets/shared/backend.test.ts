/** Which of several backends are asked: the chosen one alone, or all of them where a specification is restated. */
import { expect, test } from "bun:test";
import { CniError } from "../../../../src/cni/error.ts";
import type { Host } from "../../../../src/contract/host.ts";
import { EPERM, EPROTONOSUPPORT, SyscallError } from "../../../../src/ffi/errno.ts";
import { NetlinkError } from "../../../../src/ffi/netlink/socket.ts";
import { type Backend, Backends } from "../../../../src/resources/packets/shared/backend.ts";

interface Spec {
  backend: "a" | "b";
}

const spec: Spec = { backend: "a" };
const host = { netfilter: {} } as Host;
const withoutNetfilter = {
  get netfilter(): never {
    throw new SyscallError("socket", EPROTONOSUPPORT);
  },
} as unknown as Host;

/** Backends "a", "b" and a foreign one that note what they are asked. */
function watched(changes: Partial<Record<"a" | "b" | "foreign", Partial<Backend<Spec>>>> = {}) {
  const calls: string[] = [];
  const backend = (name: "a" | "b" | "foreign") => (): Backend<Spec> => ({
    apply: () => (calls.push(`apply ${name}`), true),
    verify: () => (calls.push(`verify ${name}`), [`${name} differs`]),
    remove: () => void calls.push(`remove ${name}`),
    sweep: () => void calls.push(`sweep ${name}`),
    ...changes[name],
  });
  const backends = new Backends<Spec>("it needs", { a: backend("a"), b: backend("b") }, backend("foreign"));
  return { backends, calls };
}

function failing(error: Error) {
  return () => {
    throw error;
  };
}

test("what a ledger says is verified, removed and repaired by its backend alone", () => {
  const { backends, calls } = watched();
  expect(backends.verbs.verify(spec, host)).toEqual(["a differs"]);
  backends.verbs.remove(spec, host);
  backends.verbs.repair(spec, host);
  expect(calls).toEqual(["verify a", "remove a", "apply a"]);
});

test("restated, one backend that agrees is enough, and all of them remove", () => {
  const { backends, calls } = watched({ b: { verify: () => [] } });
  expect(backends.verbs.verify(spec, host, true)).toEqual([]);
  backends.verbs.remove(spec, host, true);
  expect(calls).toEqual(["verify a", "verify foreign", "remove a", "remove foreign", "remove b"]);
  expect(watched().backends.verbs.verify(spec, host, true)).toEqual(["a differs"]);
});

test("a backend that fails does not keep the others from removing and sweeping", () => {
  const { backends, calls } = watched({
    foreign: { remove: failing(new Error("one")), sweep: failing(new Error("two")) },
  });
  expect(() => backends.verbs.remove(spec, host, true)).toThrow("one");
  expect(() => backends.verbs.sweep("net", () => false, host)).toThrow("two");
  expect(calls).toEqual(["remove a", "remove b", "sweep a", "sweep b"]);
});

test("where the kernel has no netfilter, what needs it is not asked to remove", () => {
  const { backends, calls } = watched({ b: { onlyNfTables: true } });
  backends.verbs.remove(spec, withoutNetfilter, true);
  expect(calls).toEqual(["remove a", "remove foreign"]);
});

test("an ADD that failed is undone unless it was refused as a whole", () => {
  const undone = (error: Error, change: Partial<Backend<Spec>> = {}) => {
    let isUndone = false;
    const { backends } = watched({ a: { apply: failing(error), ...change } });
    expect(() => backends.apply(spec, host, () => isUndone = true)).toThrow(error.message);
    return isUndone;
  };
  const refusals = [new NetlinkError("add rule", EPERM), new CniError(999, "the port is taken")];
  expect(refusals.map((error) => undone(error))).toEqual([false, false]);
  expect(refusals.map((error) => undone(error, { inSteps: true }))).toEqual([true, true]);
  expect(undone(new SyscallError("recvfrom", EPERM))).toBe(true);
});

test("a kernel without nf_tables is an error of ADD and of repair", () => {
  const { backends } = watched({ a: { apply: () => false } });
  const text = "it needs nf_tables, which this kernel does not have";
  expect(() => backends.apply(spec, host, () => {})).toThrow(text);
  expect(() => backends.verbs.repair(spec, host)).toThrow(text);
});
