/** ADD (CNI spec 1.1.0, "ADD: Add container to network, or apply modifications"). */
import type { Result } from "../../cni/result.ts";
import { prevResultOf } from "../attachment.ts";
import { judge, requirePrevResult } from "../judging.ts";
import { make } from "../making.ts";
import { ownsNothingInside, type VerbCall } from "../verb-call.ts";

export function runAdd({ plugin, invocation, document, session }: VerbCall): Result {
  const conf = plugin.validate(document), prevResult = prevResultOf(conf);
  judge(plugin, conf, invocation, prevResult);
  requirePrevResult(plugin, prevResult);
  return session.withHost(invocation, ownsNothingInside(plugin), (host) => {
    const result = make({ plugin: plugin.name, conf, invocation, prevResult, host }, (at) => plugin.add(at));
    return { ...result, cniVersion: conf.cniVersion };
  });
}
