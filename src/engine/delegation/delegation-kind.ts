/**
 * What another plugin does in this one's stead, with a configuration of its own, as a resource: making it is that
 * plugin's ADD, the rest is passed on verb by verb. A lease is another thing: ipam-resource.ts.
 */
import { errorText } from "../../cni/error.ts";
import { field, isObject } from "../../cni/json.ts";
import type { Result } from "../../cni/result.ts";
import {
  closeFile,
  makeDirectories,
  O_CREAT,
  O_NOFOLLOW,
  O_TRUNC,
  O_WRONLY,
  openFile,
  readTextFile,
  removeFile,
  syncDescriptor,
  writeAll,
} from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { delegate } from "./delegate.ts";
import { findPlugin } from "./find-plugin.ts";
import { ipamKind } from "./lease-kind.ts";
import type { Delegation } from "../../contract/plugin.ts";
import { type AnyKind, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Command, Invocation } from "../run.ts";

/** Every kind that passes verbs on, by its name in the ledger. `invocation` is the call that they are part of. */
export function delegatingKind(kind: string, invocation: Invocation): AnyKind | undefined {
  return kind === "ipam" ? ipamKind(invocation) : kind === "delegation" ? delegationKind(invocation) : undefined;
}

export function delegationKind(invocation: Invocation): ResourceKind<Delegation, Result> {
  const pass = ({ type, stdin }: Delegation, command: Command, host: Invocation["host"]) =>
    delegate(type, command, { ...invocation, stdin, document: undefined, host });
  return {
    kind: "delegation",
    unmade: { cniVersion: "" },
    apply(spec, host) {
      const { type, keptIn, stdin } = spec;
      findPlugin(type, invocation.path); // else DEL would look for it for ever
      makeDirectories(keptIn.slice(0, keptIn.lastIndexOf("/")), 0o700);
      const fd = openFile(keptIn, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
      try {
        writeAll(fd, utf8(stdin), keptIn);
        syncDescriptor(fd, keptIn);
      } catch (error) {
        undoAfter(error, () => void removeFile(keptIn));
        throw error;
      } finally {
        closeFile(fd);
      }
      // Where it fails, the file stays: it is what DEL goes by, and an earlier ADD's when this one was a mistake.
      return pass(spec, "ADD", host)!;
    },
    verify(spec, host) {
      try {
        pass(withPrevResult(spec, invocation), "CHECK", host);
        return [];
      } catch (error) {
        return [errorText(error)];
      }
    },
    remove(spec, host) {
      pass(withPrevResult(spec, invocation), "DEL", host);
      // Until here, whoever tries again finds it. Another attachment's may have its name; a crash may have cut ours off.
      const kept = readTextFile(spec.keptIn);
      if (kept !== undefined && spec.stdin.startsWith(kept)) removeFile(spec.keptIn);
    },
    describe: ({ type }) => `what ${type} makes`,
  };
}

/** The configuration is as old as ADD; the result of ADD comes with each call after it. */
function withPrevResult(spec: Delegation, { document }: Invocation): Delegation {
  const prevResult = document && field(document, "prevResult");
  if (!isObject(prevResult)) return spec;
  return { ...spec, stdin: JSON.stringify({ ...JSON.parse(spec.stdin), prevResult }) };
}
