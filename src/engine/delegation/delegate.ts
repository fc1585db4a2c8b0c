/**
 * A plugin calls another one, such as its IPAM plugin (CNI spec 1.1.0, "Section 4: Plugin Delegation"), with the same
 * parameters and configuration. Runs in process when the plugin found is this same binary.
 */
import { errorText } from "../../cni/error.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import type { Result } from "../../cni/result.ts";
import { newestResult, parsePluginResult } from "../../cni/result-versions.ts";
import { VALID_ATTACHMENTS, validAttachmentsIn } from "../../cni/valid-attachments.ts";
import { compareVersions, configVersion } from "../../cni/versions.ts";
import { meansPlugin } from "../../cni/plugin-name.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";
import { findPlugin } from "./find-plugin.ts";
import { warn } from "../../ffi/warn.ts";
import type { Invocation } from "../../cni/invocation.ts";
import type { Session } from "../session.ts";

// Loaded only for foreign plugins: our own run in process.
const foreign = () => require("./foreign-plugin.ts") as typeof import("./foreign-plugin.ts");

/** Returns the result of ADD in the newest form. Throws the delegate's own error. */
export function delegate(type: string, invocation: Invocation, session: Session): Result | undefined {
  const found = findPlugin(type, invocation.path);
  if ("own" in found) return session.runVerb(found.own, invocation);
  if (invocation.command === "ADD") return addForeign(found.path, invocation);
  if (session.options.inEveryVersion && isOlderThan(invocation, "1.1.0")) return undefined;
  foreign().runForeignPlugin(found.path, invocation);
  return undefined;
}

/** Runs GC or STATUS of the plugin that this one delegates to, or else of its IPAM plugin. */
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
    if (type && !meansPlugin(type, plugin.name)) delegate(type, invocation, session);
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
