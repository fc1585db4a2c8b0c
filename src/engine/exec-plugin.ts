/**
 * This process as one plugin, called by a runtime (CNI spec 1.1.0, "Section 2: Execution Protocol"): one call, at most
 * one JSON document on stdout, and an exit status.
 */
import { aboutText, versionDocument } from "../cni/about.ts";
import { CniError, errorText, formatError, INTERNAL } from "../cni/error.ts";
import { type Invocation, parseInvocation, readEnvironment } from "../cni/invocation.ts";
import { field } from "../cni/json.ts";
import { formatResult } from "../cni/result-versions.ts";
import { KNOWN_VERSIONS } from "../cni/versions.ts";
import { requireCaller } from "../process/calls.ts";
import { environmentBlock, variable } from "../ffi/environment.ts";
import { readAll, writeAll } from "../ffi/files.ts";
import { utf8 } from "../ffi/libc.ts";
import { VERSION } from "../process/version.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { openSession } from "./run.ts";
import { warn } from "../process/warn.ts";

type Plugin = PluginDefinition<PluginConfig>;

/** Runs the call that environment and stdin describe. Returns the exit status. */
export function execPlugin(plugin: Plugin): number {
  const supported = plugin.versions ?? KNOWN_VERSIONS;
  let invocation: Invocation | undefined;
  try {
    const environment = readEnvironment(environmentBlock());
    if (!environment.CNI_COMMAND) {
      writeAll(2, utf8(aboutText(plugin.name, VERSION, supported)));
      return 0;
    }
    invocation = parseInvocation(environment, () => readAll(0, undefined, "stdin"));
    switch (invocation.command) {
      case "VERSION":
        print(versionDocument(supported));
        break;
      case "ADD":
        add(plugin, invocation);
        break;
      default:
        openSession().runVerb(plugin, invocation);
    }
    return 0;
  } catch (error) {
    if (error instanceof OutputFailure) warn(error.message);
    else report(error, invocation);
    return 1;
  }
}

/**
 * A call by a name that is no plugin's: the caller would take anything but an error for a success. Undefined when it
 * is no call.
 */
export function refuseCall(name: string): number | undefined {
  if (!variable("CNI_COMMAND")) return undefined;
  report(noPlugin(name), undefined);
  return 1;
}

/** The document of `refuseCall`, which the first code has, too. */
export function refusalOf(name: string): string {
  return formatError(noPlugin(name));
}

function noPlugin(name: string): CniError {
  return new CniError(INTERNAL, `invalid plugin name: ${name}`, NOT_OURS);
}

const NOT_OURS = `this program is patchbay, which has no such plugin; "patchbay --help" lists those that it has`;

/** stdout is full or closed. Nothing more may be written to it. */
class OutputFailure extends Error {}

function print(text: string): void {
  try {
    writeAll(1, utf8(text), "stdout");
  } catch (error) {
    throw new OutputFailure(`cannot answer: ${errorText(error)}`, { cause: error });
  }
}

/**
 * A runtime without a readable result assumes that nothing is attached. So if the result cannot be written, DEL runs.
 */
function add(plugin: Plugin, invocation: Invocation): void {
  const session = openSession(), result = session.runVerb(plugin, invocation)!;
  try {
    requireCaller();
    print(formatResult(result, result.cniVersion));
  } catch (error) {
    try {
      session.runVerb(plugin, { ...invocation, command: "DEL" });
    } catch (failure) {
      warn(`ADD cannot give its result, and taking it back failed: ${errorText(failure)}`);
    }
    throw error;
  }
}

function report(error: unknown, invocation: Invocation | undefined): void {
  const known = error instanceof CniError ? error : new CniError(INTERNAL, errorText(error));
  try {
    print(formatError(known, configuredVersion(invocation)));
  } catch (failure) {
    warn(`${errorText(known)} (${errorText(failure)})`);
  }
}

function configuredVersion(invocation: Invocation | undefined): string | undefined {
  const version = invocation?.document && field(invocation.document, "cniVersion");
  return typeof version === "string" ? version : undefined;
}
