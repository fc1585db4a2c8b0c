/**
 * One verb of one plugin, in process. The exec'd plugin, delegation and the runtime's chains all call it. Only here do
 * other errors become the CniError that the user gets.
 */
import { CniError, INTERNAL, INVALID_ENVIRONMENT, IO_FAILURE } from "../cni/error.ts";
import type { Invocation } from "../cni/invocation.ts";
import { field } from "../cni/json.ts";
import type { Result } from "../cni/result.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { inScene, isTracing } from "../contract/trace.ts";
import { EACCES, EPERM, isErrno, SyscallError } from "../ffi/errno.ts";
import { isNetlinkError } from "../ffi/netlink/netlink-error.ts";
import { delegate } from "./delegation/delegate.ts";
import { Session, type SessionOptions } from "./session.ts";
import { acceptedDocument, type VerbCall } from "./verb-call.ts";

export function openSession(options: SessionOptions = {}): Session {
  return new Session({ runVerb, delegate }, options);
}

/**
 * Returns the result of ADD (newest form, `cniVersion` as configured), undefined for other verbs. Throws CniError. The
 * default session keeps nothing open.
 */
export function runVerb(
  plugin: PluginDefinition<PluginConfig>,
  invocation: Invocation,
  session: Session = openSession(),
): Result | undefined {
  try {
    const negotiated = session.options.inEveryVersion ? "DEL" : invocation.command;
    const document = acceptedDocument(plugin, invocation, negotiated);
    const call = { plugin, invocation: { ...invocation, document }, document, session };
    if (!isTracing()) return dispatch(call);
    const { command: verb, containerId, ifName } = invocation;
    const scene = { verb, plugin: plugin.name, network: String(field(document, "name")), containerId, ifName };
    return inScene(scene, () => dispatch(call));
  } catch (error) {
    throw asCniError(error);
  }
}

function dispatch(call: VerbCall): Result | undefined {
  const { command } = call.invocation;
  switch (command) {
    case "ADD":
      return (require("./verbs/add.ts") as typeof import("./verbs/add.ts")).runAdd(call);
    case "DEL":
      return (require("./verbs/del.ts") as typeof import("./verbs/del.ts")).runDel(call);
    case "CHECK":
      return (require("./verbs/check.ts") as typeof import("./verbs/check.ts")).runCheck(call);
    case "GC":
      return (require("./verbs/gc.ts") as typeof import("./verbs/gc.ts")).runGc(call);
    case "STATUS":
      return (require("./verbs/status.ts") as typeof import("./verbs/status.ts")).runStatus(call);
    default:
      throw new CniError(INVALID_ENVIRONMENT, `unknown CNI_COMMAND: ${command}`);
  }
}

function asCniError(error: unknown): CniError {
  const known = error instanceof CniError ? error : undefined, step = nextStepAfter(error);
  // A delegate's error has it already.
  if (known !== undefined && (step === "" || known.details.endsWith(step))) return known;
  const code = known?.code ?? (error instanceof SyscallError ? IO_FAILURE : INTERNAL);
  const details = [known?.details ?? "", step].filter((text) => text !== "").join("; ");
  return new CniError(code, (error as Error).message, details, { cause: error });
}

/** What the kernel does not permit needs root. */
function nextStepAfter(error: unknown): string {
  if (!isErrno(error, EPERM, EACCES) && !isNetlinkError(error, EPERM, EACCES)) {
    return error instanceof Error && error.cause !== undefined ? nextStepAfter(error.cause) : "";
  }
  const { missingPrivileges } = require("../ffi/capabilities.ts") as typeof import("../ffi/capabilities.ts");
  return missingPrivileges() ?? "";
}
