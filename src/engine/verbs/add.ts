/** ADD (CNI spec 1.1.0, "ADD: Add container to network, or apply modifications"). */
import type { Result } from "../../cni/result.ts";
import { refuseIfLeft } from "../../process/calls.ts";
import { prevResultOf } from "../attachment.ts";
import { judge, requirePrevResult } from "../judging.ts";
import { mayBeBegunByResident, wasBegunByResident } from "../ledger/begun-by-resident.ts";
import { readLedger } from "../ledger/ledger.ts";
import { make } from "../making.ts";
import { ownerOf, ownsNothingInside, type VerbCall } from "../verb-call.ts";

export function runAdd(call: VerbCall): Result {
  const { plugin, invocation, document, session } = call;
  const conf = plugin.validate(document), prevResult = prevResultOf(conf);
  judge(plugin, conf, invocation, prevResult);
  requirePrevResult(plugin, prevResult);
  refuseIfLeft();
  if (isLeftByResident(call)) session.runVerb(plugin, { ...invocation, command: "DEL" });
  return session.withHost(invocation, ownsNothingInside(plugin), (host) => {
    const result = make({ plugin: plugin.name, conf, invocation, prevResult, host }, (at) => plugin.add(at));
    return { ...result, cniVersion: conf.cniVersion };
  });
}

/** After an earlier ADD of the same attachment it stays, and DEL removes it all. */
function isLeftByResident(call: VerbCall): boolean {
  if (!mayBeBegunByResident()) return false;
  const begun = readLedger(ownerOf(call), call.plugin.name);
  if (begun === undefined || begun.adds.length > 1) return false;
  return wasBegunByResident(begun);
}
