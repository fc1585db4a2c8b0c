/**
 * What a caller has that this process has not, or the other way round. A caller without a difference gains nothing by
 * having its call done here. What the kernel says of it counts, not what it says of itself.
 *
 * Not compared: the cgroup, because a service's is another than its engine's, and root leaves its own by a write to a
 * file; and what no process can see of another, Landlock above all.
 */
import { EINVAL, ENOENT, isErrno } from "../../ffi/errno.ts";
import { ProcessFiles } from "../../ffi/process-files.ts";

export type Difference = "uid" | "namespace" | "capabilities" | "confinement";

const IDS = ["Uid", "Gid"];
/** A path means the same to both when root and mount namespace are the same. */
const LINKS = ["ns/mnt", "ns/net", "ns/user", "ns/pid", "root"];
/** A process that has these can give itself the inheritable and the ambient ones, too. */
const CAPABILITIES = ["CapPrm", "CapEff", "CapBnd"];
/** A process that confines itself by Landlock mostly sets the first. */
const CONFINEMENTS = ["NoNewPrivs", "Seccomp", "Seccomp_filters"];
/** The label of SELinux, AppArmor or Smack. */
const LABEL = "attr/current";

interface Properties {
  links: readonly string[];
  values: ReadonlyMap<string, string>;
  /** Undefined where no such module runs. */
  label: string | undefined;
}

let own: Properties | undefined;

function ownProperties(): Properties {
  const files = new ProcessFiles("self"), names = [...IDS, ...CAPABILITIES, ...CONFINEMENTS];
  try {
    return {
      links: LINKS.map((link) => files.link(link)),
      values: new Map(names.map((name) => [name, files.value(name)])),
      label: labelOf(files),
    };
  } finally {
    files.close();
  }
}

function labelOf(files: ProcessFiles): string | undefined {
  try {
    return files.text(LABEL);
  } catch (error) {
    if (isErrno(error, EINVAL, ENOENT)) return undefined;
    throw error;
  }
}

/** Throws SyscallError when the other process has ended, or is hidden. */
export function differenceOf(other: ProcessFiles): Difference | undefined {
  const { label } = own ??= ownProperties();
  return differenceBesideLabel(other) ??
    (label === undefined || other.text(LABEL) === label ? undefined : "confinement");
}

/** Process 1 mostly has another label than an engine. */
export function differenceBesideLabel(other: ProcessFiles): Difference | undefined {
  const { links, values } = own ??= ownProperties();
  const areSame = (names: readonly string[]) => names.every((name) => other.value(name) === values.get(name));
  if (!areSame(IDS)) return "uid";
  if (LINKS.some((link, index) => other.link(link) !== links[index])) return "namespace";
  if (!areSame(CAPABILITIES)) return "capabilities";
  return areSame(CONFINEMENTS) ? undefined : "confinement";
}
