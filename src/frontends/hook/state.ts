/**
 * What a container runtime tells its hooks on stdin: the container's state (OCI runtime specification,
 * "State"). Pure.
 */
import { CniError, DECODING_FAILURE, INVALID_CONFIG } from "../../cni/error.ts";
import { checkContainerId } from "../../cni/invocation.ts";
import { isObject, parseDocument } from "../../cni/json.ts";

/** Annotations are most of a state, and those of Kubernetes have at most 256 KiB. */
export const STATE_LIMIT_BYTES = 1024 * 1024;

export interface ContainerState {
  readonly id: string;
  readonly status: string;
  /** The number in the runtime's namespace; undefined when there is no process, which some runtimes write as 0. */
  readonly pid: number | undefined;
  /** An absolute path. */
  readonly bundle: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** For `hook add`: checks every field that it reads. */
export function parseState(text: string): ContainerState {
  const document = stateDocument(text), version = document["ociVersion"];
  if (typeof version !== "string" || !/^1\./.test(version)) {
    throw invalid("ociVersion", version, "this program reads the states of versions 1");
  }
  const { status, pid, bundle, annotations } = document;
  if (typeof status !== "string") throw invalid("status", status, "it must be a string");
  if (pid !== undefined && !(Number.isSafeInteger(pid) && (pid as number) >= 0)) {
    throw invalid("pid", pid, "it must be a process id");
  }
  if (typeof bundle !== "string" || !bundle.startsWith("/") || bundle.includes("\0")) {
    throw invalid("bundle", bundle, "it must be an absolute path");
  }
  const id = idIn(document);
  return { id, status, pid: (pid as number) || undefined, bundle, annotations: textsIn(annotations ?? {}) };
}

/**
 * For `hook del`: only the id has to be valid, because a refused call would leave everything in place. Annotations that
 * are not strings count as absent.
 */
export function parseEndedState(text: string): Pick<ContainerState, "id" | "annotations"> {
  const document = stateDocument(text), id = idIn(document);
  try {
    return { id, annotations: textsIn(document["annotations"] ?? {}) };
  } catch {
    return { id, annotations: {} };
  }
}

function stateDocument(text: string): Record<string, unknown> {
  if (text.trim() === "") {
    throw new CniError(
      DECODING_FAILURE,
      "stdin is empty",
      "container runtimes write a container's state to their hooks",
    );
  }
  const document = parseDocument(text, "the container's state on stdin");
  if (isObject(document)) return document;
  throw new CniError(DECODING_FAILURE, "the container's state on stdin: it must be a JSON object");
}

/** CNI permits fewer ids than runc and crun do. */
function idIn({ id }: Record<string, unknown>): string {
  if (typeof id !== "string" || id === "") throw invalid("id", id, "it must be the container's id");
  try {
    checkContainerId(id);
    return id;
  } catch (error) {
    const rule = 'CNI takes letters, digits, "_", "." and "-", with a letter or digit first: name the container so';
    throw new CniError(INVALID_CONFIG, `"id" is ${JSON.stringify(id)}: ${(error as Error).message}`, rule);
  }
}

function textsIn(annotations: unknown): Record<string, string> {
  if (!isObject(annotations)) throw invalid("annotations", annotations, "it must be an object of strings");
  for (const [key, value] of Object.entries(annotations)) {
    if (typeof value !== "string") throw invalid(`annotations.${key}`, value, "it must be a string");
  }
  return annotations as Record<string, string>;
}

function invalid(key: string, value: unknown, rule: string): CniError {
  const shown = value === undefined ? "missing" : JSON.stringify(value).slice(0, 200);
  return new CniError(DECODING_FAILURE, `the container's state on stdin: "${key}" is ${shown}`, rule);
}
