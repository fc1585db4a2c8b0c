/**
 * A plugin calling another one, as all do for addresses (CNI spec 1.1.0, "Section 4: Plugin Delegation"): same
 * parameters, same configuration, another command. In process when the plugin found is this same binary.
 */
import { errorText } from "../../cni/error.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import type { Result } from "../../cni/result.ts";
import { newestResult, parsePluginResult } from "../../cni/result-versions.ts";
import { VALID_ATTACHMENTS, validAttachmentsIn } from "../../cni/valid-attachments.ts";
import { compareVersions, configVersion } from "../../cni/versions.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";
import { findPlugin } from "./find-plugin.ts";
import { warn } from "../../ffi/warn.ts";
import type { Invocation } from "../../cni/invocation.ts";
import type { Session } from "../session.ts";

// Our own plugins run in process and need nothing of it.
const foreign = () => require("./foreign-plugin.ts") as typeof import("./foreign-plugin.ts");

/** Answers ADD's result in the newest form. Throws the delegate's own error. */
export function delegate(type: string, invocation: Invocation, session: Session): Result | undefined {
  const found = findPlugin(type, invocation.path);
  if ("own" in found) return session.runVerb(found.own, invocation);
  if (invocation.command === "ADD") return addForeign(found.path, invocation);
  if (session.options.inEveryVersion && isOlderThan(invocation, "1.1.0")) return undefined;
  foreign().runForeignPlugin(found.path, invocation);
  return undefined;
}

/** Passes GC and STATUS on: to the plugin that works in this one's place, or else to the IPAM plugin. */
export function passOn(
  plugin: PluginDefinition<PluginConfig>,
  conf: PluginConfig,
  invocation: Invocation,
  session: Session,
): void {
  const { document } = invocation;
  if (plugin.passedOn === undefined) {
    const type = conf.ipam?.type;
    // The IPAM plugin itself reads the same configuration.
    if (type && type !== plugin.name) delegate(type, invocation, session);
    return;
  }
  const other = plugin.passedOn(conf);
  if (other === undefined) return;
  const stdin = JSON.stringify({ ...other.conf, [VALID_ATTACHMENTS]: document && validAttachmentsIn(document) });
  delegate(other.type, { ...invocation, stdin, document: undefined }, session);
}

function isOlderThan({ document, stdin }: Invocation, version: string): boolean {
  const config = document ?? parseDocument(stdin, "error unmarshall network config");
  return isObject(config) && compareVersions(configVersion(config), version) < 0;
}

/** "the upper plugin should execute again with DEL before returning failure": part of an address may be taken. */
function addForeign(path: string, call: Invocation): Result {
  try {
    const stdout = foreign().runForeignPlugin(path, call);
    const config = call.document ?? parseDocument(call.stdin, "error unmarshall network config");
    return newestResult(parsePluginResult(stdout, isObject(config) ? configVersion(config) : ""));
  } catch (error) {
    try {
      foreign().runForeignPlugin(path, { ...call, command: "DEL" });
    } catch (failure) {
      const told = errorText(failure), isSame = told === errorText(error);
      warn(`${path} failed ADD, and the DEL after it ${isSame ? "for the same reason" : `too: ${told}`}`);
    }
    throw error;
  }
}
