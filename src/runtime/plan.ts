/** What ADD of a whole network would make: `patchbay plan`. */
import { newestResult, type VersionedResult } from "../cni/result-versions.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { planAdd } from "../engine/operator/plan.ts";
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
import type { PlannedPlugin } from "../contract/shown.ts";

/** What ADD would make, with nothing made. */
export function planNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): PlannedPlugin[] {
  let result: VersionedResult | undefined;
  checkNames(network, request);
  return inSession((session) =>
    network.plugins.map((plugin) =>
      namingPlugin(plugin, "plan", () => {
        const { type } = plugin;
        const found = findPlugin(type, runtime.pluginPath);
        if (!("own" in found)) return { type, resources: undefined, obstacles: [], warnings: [] };
        const derived = { prevResult: documentOf(result), capabilityArgs: request.capabilityArgs };
        const call = { ...invocationOf(runtime, network, plugin, derived, request), command: "ADD" as const };
        const plan = planAdd(found.own, call, result && newestResult(result), session);
        result = inVersion(plan.result, network.cniVersion);
        const { resources, obstacles, warnings } = plan;
        return { type, resources, obstacles, warnings };
      })
    )
  );
}
