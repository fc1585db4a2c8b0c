/** STATUS (CNI spec 1.1.0, "STATUS: Check plugin status"): could ADD work now? */
import { delegate } from "./delegate.ts";
import { type VerbCall, withHost } from "./run.ts";

export function runStatus({ plugin, invocation, document }: VerbCall): undefined {
  const conf = plugin.validate(document);
  withHost({ ...invocation, netnsPath: "" }, true, (host) => plugin.status?.(conf, host));
  const ipamType = conf.ipam?.type;
  // The IPAM plugin itself reads the same configuration.
  if (ipamType && ipamType !== plugin.name) delegate(ipamType, "STATUS", invocation);
}
