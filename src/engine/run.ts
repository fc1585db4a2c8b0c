/**
 * One verb of one plugin, in process. The exec'd plugin, delegation and the runtime's chains all call it. Only here do
 * other errors become the CniError that the user gets.
 */
import { CniError, errorText, INTERNAL, INVALID_ENVIRONMENT, INVALID_NETNS, IO_FAILURE } from "../cni/error.ts";
import { type Invocation, NO_CALL } from "../cni/invocation.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import { meansPlugin } from "../cni/plugin-name.ts";
import type { Result } from "../cni/result.ts";
import { newestResult, parsePluginResult } from "../cni/result-versions.ts";
import { VALID_ATTACHMENTS, validAttachmentsIn } from "../cni/valid-attachments.ts";
import { compareVersions, configVersion } from "../cni/versions.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { inScene, isTracing } from "../contract/trace.ts";
import { isFiltered, missingPrivileges, NEEDED_TO_ENTER } from "../ffi/capabilities.ts";
import { EACCES, ENOSYS, EPERM, EROFS, isErrno, SyscallError } from "../ffi/errno.ts";
import { isNetlinkError } from "../ffi/netlink/netlink-error.ts";
import { ENTERING, isNetnsGone } from "../ffi/netns.ts";
import { withOwnConnections } from "../process/kept-open.ts";
import { withOwnPatience } from "../process/patience.ts";
import { warn } from "../process/warn.ts";
import { CallHost } from "./call-host.ts";
import { findPlugin } from "./delegation/find-plugin.ts";
import { type Opened, type OpenHost, openHost, SameNetnsError } from "./open-host.ts";
import type { Session, SessionOptions } from "./session.ts";
import { acceptedDocument, type VerbCall } from "./verb-call.ts";
import { runAdd } from "./verbs/add.ts";
import { runStatus } from "./verbs/status.ts";

// Loaded only for foreign plugins: our own run in process.
const foreign = () => require("./delegation/foreign-plugin.ts") as typeof import("./delegation/foreign-plugin.ts");

export function openSession(options: SessionOptions = {}): Session {
  return new EngineSession(options);
}

class EngineSession implements Session {
  private reused: { netnsPath: string; host: OpenHost } | undefined;

  /** `given`: the sockets and namespaces of the call that this session's calls are part of. */
  constructor(readonly options: SessionOptions, private readonly given?: Opened) {}

  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation): Result | undefined {
    try {
      const negotiated = this.options.inEveryVersion ? "DEL" : invocation.command;
      const document = acceptedDocument(plugin, invocation, negotiated);
      const call = { plugin, invocation: { ...invocation, document }, document, session: this };
      const verbOf = () => withOwnPatience(() => withOwnConnections(() => dispatch(call)));
      if (!isTracing()) return verbOf();
      const { command: verb, containerId, ifName } = invocation;
      const scene = { verb, plugin: plugin.name, network: String(field(document, "name")), containerId, ifName };
      return inScene(scene, verbOf);
    } catch (error) {
      throw asCniError(error);
    }
  }

  delegate(type: string, invocation: Invocation): Result | undefined {
    const found = findPlugin(type, invocation.path);
    if ("own" in found) return this.runVerb(found.own, invocation);
    if (invocation.command === "ADD") return addForeign(found.path, invocation);
    if (this.options.inEveryVersion && isOlderThan(invocation, "1.1.0")) return undefined;
    foreign().runForeignPlugin(found.path, invocation);
    return undefined;
  }

  passOn(plugin: PluginDefinition<PluginConfig>, conf: PluginConfig, invocation: Invocation): void {
    const { document } = invocation;
    if (plugin.passedOn === undefined) {
      const type = conf.ipam?.type;
      // The IPAM plugin itself reads the same configuration.
      if (type && !meansPlugin(type, plugin.name)) this.delegate(type, invocation);
      return;
    }
    const other = plugin.passedOn(conf);
    if (other === undefined) return;
    const stdin = JSON.stringify({ ...other.conf, [VALID_ATTACHMENTS]: document && validAttachmentsIn(document) });
    this.delegate(other.type, { ...invocation, stdin, document: undefined });
  }

  withHost<T>(invocation: Invocation, mayBeGone: boolean, work: (host: CallHost) => T): T {
    const run = (opened: Opened) => work(this.hostOf(opened, invocation));
    if (this.given !== undefined) return run(this.given);
    const reused = this.reusedFor(invocation, mayBeGone), host = reused ?? openFor(invocation, mayBeGone);
    const staysOpen = reused !== undefined || this.keep(invocation, host);
    try {
      return run(host);
    } finally {
      if (staysOpen) host.release();
      else host.close();
    }
  }

  hostOf(opened: Opened, invocation = NO_CALL): CallHost {
    const delegateFrom = (type: string, call: Invocation, from: Opened) =>
      new EngineSession(this.options, from).delegate(type, call);
    return new CallHost(opened, invocation, delegateFrom, opened.container);
  }

  close(): void {
    this.reused?.host.close();
    this.reused = undefined;
  }

  private reusedFor({ netnsPath }: Invocation, mayBeGone: boolean): OpenHost | undefined {
    const { reused } = this;
    const fits = reused?.netnsPath === netnsPath && (mayBeGone || reused.host.container !== undefined);
    return fits ? reused.host : undefined;
  }

  private keep({ netnsPath }: Invocation, host: OpenHost): boolean {
    if (!this.options.keepsOpen || this.reused !== undefined) return false;
    this.reused = { netnsPath, host };
    return true;
  }
}

function dispatch(call: VerbCall): Result | undefined {
  const { command } = call.invocation;
  switch (command) {
    case "ADD":
      return runAdd(call);
    case "DEL":
      return (require("./verbs/del.ts") as typeof import("./verbs/del.ts")).runDel(call);
    case "CHECK":
      return (require("./verbs/check.ts") as typeof import("./verbs/check.ts")).runCheck(call);
    case "GC":
      return (require("./verbs/gc.ts") as typeof import("./verbs/gc.ts")).runGc(call);
    case "STATUS":
      return runStatus(call);
    default:
      throw new CniError(INVALID_ENVIRONMENT, `unknown CNI_COMMAND: ${command}`);
  }
}

function openFor({ netnsPath, allowOwnNetns }: Invocation, mayBeGone: boolean): OpenHost {
  // A caller of a process is refused before.
  if (netnsPath === "" && !mayBeGone) {
    throw new CniError(INVALID_ENVIRONMENT, "required env variables [CNI_NETNS] missing");
  }
  try {
    return openHost(netnsPath, { mayBeGone, allowOwn: allowOwnNetns });
  } catch (error) {
    if (error instanceof SameNetnsError) {
      throw new CniError(
        INVALID_NETNS,
        "plugin's netns and netns from CNI_NETNS should not be the same",
        `CNI_NETNS is "${netnsPath}"`,
        { nextStep: ownNetnsStep(netnsPath) },
      );
    }
    // The words "failed to Statfs" are the reference plugins'; engines look for them.
    const reason = isNetnsGone(error) && error instanceof SyscallError
      ? `failed to Statfs "${netnsPath}": no such file or directory`
      : (error as Error).message;
    throw new CniError(
      INVALID_ENVIRONMENT,
      `failed to open netns "${netnsPath}": ${reason}`,
      "CNI_NETNS must be the path of a network namespace",
      { cause: error },
    );
  }
}

function ownNetnsStep(path: string): string {
  const pid = /^\/proc\/([0-9]+)\//.exec(path)?.[1];
  return pid === undefined
    ? `${path} is the host's own network namespace, and NETNS a container's; 'ip netns add NAME' makes one`
    : `process ${pid} is in the host's network namespace; a container's process is in one of its own`;
}

function isOlderThan({ document, stdin }: Invocation, version: string): boolean {
  const config = document ?? parseDocument(stdin, "error unmarshall network config");
  return isObject(config) && compareVersions(configVersion(config), version) < 0;
}

/**
 * Runs DEL after a failed ADD: "the upper plugin should execute again with DEL before returning failure". The delegate
 * may have taken an address.
 */
function addForeign(path: string, call: Invocation): Result {
  try {
    const stdout = foreign().runForeignPlugin(path, call);
    const config = call.document ?? parseDocument(call.stdin, "error unmarshall network config");
    return newestResult(parsePluginResult(stdout, isObject(config) ? configVersion(config) : ""));
  } catch (error) {
    try {
      foreign().runForeignPlugin(path, { ...call, command: "DEL" });
    } catch (failure) {
      const reason = errorText(failure), isSame = reason === errorText(error);
      warn(`${path} failed ADD, and the DEL after it ${isSame ? "for the same reason" : `too: ${reason}`}`);
    }
    throw error;
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

/** What the kernel does not permit needs root, unless a filter forbids it to root, too. */
function nextStepAfter(error: unknown): string {
  if (isErrno(error, EROFS) && !error.subject.startsWith("/proc/")) return READ_ONLY;
  const isMissing = isErrno(error, ENOSYS);
  if (!isMissing && !isErrno(error, EPERM, EACCES) && !isNetlinkError(error, EPERM, EACCES)) {
    return error instanceof Error && error.cause !== undefined ? nextStepAfter(error.cause) : "";
  }
  if (isMissing) return isFiltered() ? FILTERED : TOO_OLD;
  const reasons: string[] = [];
  if (isErrno(error, EPERM) && isFiltered()) reasons.push(FILTERED);
  if (isErrno(error, EPERM) && error.call === ENTERING) reasons.push(NEEDED_TO_ENTER);
  return missingPrivileges() ?? reasons.join("; or ");
}

const READ_ONLY =
  "/run and /var/lib/cni must be writable; PATCHBAY_STATE_DIR and host-local's dataDir name other places";
const FILTERED = "this process has a filter of system calls (seccomp), which may forbid this one";
const TOO_OLD = "the kernel has no such system call: docs/hosts.md says which Linux is needed";
