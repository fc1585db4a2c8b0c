/**
 * CHECK (CNI spec 1.1.0, "CHECK: Check container's networking is as expected"): every resource is compared with the
 * kernel, and all differences are told at once.
 */
import { CniError, INTERNAL, INVALID_CONFIG } from "../cni/error.ts";
import { parsePrevResult } from "../cni/result-versions.ts";
import { loadKind } from "../resources/table.ts";
import { restate } from "./attachment.ts";
import { ipamKind } from "./ipam-resource.ts";
import { readLedger } from "./ledger.ts";
import type { Resource } from "./resource.ts";
import { ownsNothingInside, type VerbCall, withHost } from "./run.ts";
import { traced } from "./trace.ts";

export function runCheck({ plugin, invocation, document }: VerbCall): undefined {
  const conf = plugin.validate(document);
  const prevResult = parsePrevResult(conf);
  if (prevResult === undefined && !plugin.checksWithoutPrevResult) {
    throw new CniError(INVALID_CONFIG, "Required prevResult missing");
  }
  withHost(invocation, ownsNothingInside(plugin), (host) => {
    const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResult, host };
    const differences: string[] = [];
    const restated = restate(call, (at) => {
      differences.push(...(plugin.check?.(at) ?? []));
      return plugin.add(at);
    });
    const record = readLedger({ network: conf.name, ...invocation }, plugin.name);
    // The ledger says what was made, whatever the configuration says today. What prevResult claims is looked at too.
    const recorded = record?.entries.flatMap(({ kind, spec }): Resource[] => {
      const known = kind === "ipam" ? ipamKind(invocation) : loadKind(kind);
      return known === undefined ? [] : [{ kind: known, spec }];
    });
    const claims = recorded === undefined ? restated : restated.filter(({ kind }) => kind.kind === "addressing");
    const seen = new Set<string>();
    for (const { kind, spec } of [...(recorded ?? []), ...claims]) {
      const key = kind.kind + JSON.stringify(spec);
      if (seen.has(key)) continue;
      seen.add(key);
      differences.push(...traced("verify", kind, spec, () => kind.verify(spec, host)));
    }
    if (differences.length > 0) throw new CniError(INTERNAL, [...new Set(differences)].join("; "));
  });
}
