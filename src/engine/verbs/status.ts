/**
 * STATUS (CNI spec 1.1.0, "STATUS: Check plugin status"): could ADD work now? Runtimes pass no capability's
 * arguments to STATUS (`runtimeConfig`), so what only these can say is not asked for.
 */
import { passOn } from "../delegation/delegate.ts";
import { type VerbCall, withHost } from "../run.ts";

export function runStatus({ plugin, invocation, document }: VerbCall): undefined {
  const conf = plugin.validate(document);
  withHost({ ...invocation, netnsPath: "" }, true, (host) => plugin.status?.(conf, host));
  passOn(plugin, conf, invocation);
}
