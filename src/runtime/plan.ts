/** What ADD of a whole network would make: `patchbay plan`. */
import { newestResult, type VersionedResult } from "../cni/result-versions.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { collectFailures } from "../contract/failures.ts";
import type { Resource } from "../contract/resource.ts";
import { planAdd } from "../engine/operator/plan.ts";
import { requireCache } from "./cache.ts";
import { caveatsHere } from "./caveats.ts";
import type { Network } from "./conf/network.ts";
import {
  type AttachmentRequest,
  checkNames,
  documentOf,
  inSession,
  inVersion,
  invocationOf,
  namingPlugin,
  type Runtime,
} from "./plugin-call.ts";
import type { PlannedPlugin } from "../contract/summaries.ts";

/** What ADD would make, with nothing made. `afterDel` as for `planAdd`. */
export function planNetwork(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
  afterDel?: { hasLink: boolean },
): PlannedPlugin<unknown>[] {
  const { cacheDirectory } = runtime;
  const before: Resource<unknown>[] = [];
  let result: VersionedResult | undefined;
  checkNames(network, request);
  const planned: PlannedPlugin<unknown>[] = inSession((session) =>
    network.plugins.map((plugin) =>
      namingPlugin(plugin, "plan", () => {
        const { type } = plugin;
        const found = findPlugin(type, runtime.pluginPath);
        if (!("own" in found)) return { type, resources: undefined, obstacles: [], warnings: [] };
        const derived = { prevResult: documentOf(result), capabilityArgs: request.capabilityArgs };
        const call = { ...invocationOf(runtime, network, plugin, derived, request), command: "ADD" as const };
        const plan = planAdd(found.own, call, result && newestResult(result), before, session, afterDel);
        before.push(...plan.list);
        result = inVersion(plan.result, network.cniVersion);
        const { resources, obstacles, warnings } = plan;
        return { type, resources, obstacles, warnings };
      })
    )
  );
  caveatsHere(network).forEach(({ warnings }, index) => planned[index]!.warnings.push(...warnings));
  // ADD writes the record when all plugins are done.
  planned.at(-1)?.obstacles.push(...collectFailures([cacheDirectory], requireCache));
  return planned;
}
