/**
 * STATUS (CNI spec 1.1.0, "STATUS: Check plugin status"): could ADD work now? Runtimes pass no capabilities
 * (`runtimeConfig`) to STATUS, so it does not require them.
 */
import { judgedConf } from "../judging.ts";
import { requireStateDirectory } from "../../process/state-directory.ts";
import { ownsNothingInside, type VerbCall } from "../verb-call.ts";

export function runStatus({ plugin, invocation, document, session }: VerbCall): undefined {
  const conf = judgedConf(plugin, document);
  // Such a plugin writes no ledger.
  if (!ownsNothingInside(plugin)) requireStateDirectory();
  session.withHost({ ...invocation, netnsPath: "" }, true, (host) => plugin.status?.(conf, host, document));
  session.passOn(plugin, conf, invocation);
}
