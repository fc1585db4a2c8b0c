/** ADD (CNI spec 1.1.0, "ADD: Add container to network, or apply modifications"). */
import type { Result } from "../../cni/result.ts";
import { parsePrevResult } from "../../cni/result-versions.ts";
import { make } from "../attachment.ts";
import { ownsNothingInside, type VerbCall, withHost } from "../run.ts";

export function runAdd({ plugin, invocation, document }: VerbCall): Result {
  const conf = plugin.validate(document);
  return withHost(invocation, ownsNothingInside(plugin), (host) => {
    const prevResult = () => parsePrevResult(conf);
    const result = make({ plugin: plugin.name, conf, invocation, prevResult, host }, (at) => plugin.add(at));
    return { ...result, cniVersion: conf.cniVersion };
  });
}
