/**
 * CHECK (CNI spec 1.1.0, "CHECK: Check container's networking is as expected"): compares every resource with the kernel
 * and reports all differences together.
 */
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import { Differences } from "../../contract/failures.ts";
import type { Invocation } from "../../cni/invocation.ts";
import type { Result } from "../../cni/result.ts";
import { parsePrevResult } from "../../cni/result-versions.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { canonicalMac } from "../../net/mac.ts";
import { loadKind } from "../../resources/table.ts";
import { confirmedAdd } from "../ledger/confirmation.ts";
import type { Host } from "../../contract/host.ts";
import { readLedger } from "../ledger/ledger.ts";
import { newerAdd, unknownKind } from "../ledger/newer.ts";
import type { Resource } from "../../contract/resource.ts";
import { judge } from "../judging.ts";
import { restate } from "../restating.ts";
import { ownsNothingInside, type VerbCall } from "../verb-call.ts";
import { traced } from "../../contract/trace.ts";

export function runCheck({ plugin, invocation, document, session }: VerbCall): undefined {
  const conf = plugin.validate(document);
  const prevResult = parsePrevResult(conf);
  if (prevResult === undefined && !plugin.checksWithoutPrevResult) {
    throw new CniError(INVALID_CONFIG, "Required prevResult missing");
  }
  judge(plugin, conf, invocation, () => prevResult);
  session.withHost(invocation, ownsNothingInside(plugin), (host) => {
    const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResult, host };
    const differences: string[] = [];
    const restated = restate(call, "check", (at) => {
      differences.push(...(plugin.check?.(at) ?? []));
      return plugin.add(at);
    });
    const record = readLedger({ network: conf.name, ...invocation }, plugin.name);
    // The ledger records what the ADD of prevResult made, independent of the current configuration. The addresses and
    // routes of prevResult are verified too; and leases where the configuration has them now, which may have moved. An
    // attachment that others made is compared with the configuration.
    const made = record && prevResult && confirmedAdd(record, prevResult), hasLease = restated.some(isLeased);
    const recorded = made?.entries.flatMap(({ kind, spec }) => {
      const known = loadKind(kind);
      return known === undefined || (known.isLease && hasLease) ? [] : [{ kind: known, spec }];
    });
    for (const { kind } of (made ?? (record && newerAdd(record)))?.entries ?? []) {
      if (loadKind(kind) === undefined) differences.push(errorText(unknownKind(record!.path, kind)));
    }
    const claims = recorded === undefined ? restated : restated.filter(isAddressing);
    if (restated.some(({ kind }) => kind.isContainerLink)) {
      differences.push(...otherLink(prevResult, invocation, host));
    }
    const seen = new Set<string>();
    const verify = ({ kind, spec }: Resource<unknown>, isRestated: boolean) => {
      const key = kind.kind + JSON.stringify(spec);
      if (seen.has(key)) return;
      seen.add(key);
      differences.push(...traced("verify", kind, spec, () => kind.verify(spec, host, isRestated)));
      if (session.options.tellsOperator) differences.push(...kind.inTheWay?.(spec, host) ?? []);
    };
    recorded?.forEach((one) => verify(one, false));
    claims.forEach((one) => verify(one, true));
    if (differences.length > 0) throw new Differences([...new Set(differences)]);
  });
}

const isLeased = ({ kind }: Resource<unknown>) => kind.isLease === true;
const isAddressing = (one: Resource<unknown>) => one.kind.addressesIn !== undefined || isLeased(one);

/** Compares with prevResult, not with the ledger: a later plugin may have changed the link's MAC. */
function otherLink(prevResult: Result | undefined, { ifName, netnsPath }: Invocation, host: Host): string[] {
  const inside = prevResult?.interfaces?.findLast(({ name, sandbox }) => name === ifName && sandbox);
  const sandbox = inside?.sandbox ?? "";
  if (sandbox !== netnsPath) return [`Sandbox in prevResult ${sandbox} doesn't match configured netns: ${netnsPath}`];
  const { mac } = inside!, link = getLink(host.container!.route, ifName);
  if (link === undefined || !mac || (canonicalMac(mac) ?? mac) === link.mac) return [];
  return [`Interface ${ifName} Mac ${mac} doesn't match container Mac: ${link.mac}`];
}
