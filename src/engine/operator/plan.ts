/**
 * What ADD would make: `patchbay plan`. Restates the plugin's story with names and MAC addresses picked as for ADD, and
 * with the addresses that IPAM would lease next.
 */
import { distinct, errorText } from "../../cni/error.ts";
import type { Invocation } from "../../cni/invocation.ts";
import type { Result } from "../../cni/result.ts";
import { findPlugin } from "../delegation/find-plugin.ts";
import { collectFailures, EarlierFailure } from "../../contract/failures.ts";
import type { Host } from "../../contract/host.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";
import type { Resource } from "../../contract/resource.ts";
import { isMadeEarlier, madeEarlier } from "../earlier-link.ts";
import { judge, requirePrevResult } from "../judging.ts";
import { restate } from "../restating.ts";
import { idleLines } from "./idle.ts";
import { openSession } from "../run.ts";
import type { Session } from "../session.ts";
import { acceptedDocument, ownsNothingInside } from "../verb-call.ts";
import type { PlannedPlugin, PlannedResource } from "../../contract/summaries.ts";

export interface PluginPlan extends Pick<PlannedPlugin<unknown>, "obstacles" | "warnings"> {
  resources: PlannedResource[];
  list: Resource<unknown>[];
  result: Result;
}

/** `isHeldUp`: a resource cannot be made. */
interface PlannedStory extends PluginPlan {
  isHeldUp: boolean;
}

/** `afterDel`: of the attachment that is there; its addresses are free then, and its link, if it has that, is gone. */
export function planAdd(
  plugin: PluginDefinition<PluginConfig>,
  invocation: Invocation,
  prevResult: Result | undefined,
  before: readonly Resource<unknown>[],
  session: Session,
  afterDel?: { hasLink: boolean },
): PluginPlan {
  const { isHeldUp, ...plan } = session.withHost(
    invocation,
    ownsNothingInside(plugin),
    (host) => planStory(plugin, invocation, prevResult, before, host, afterDel),
  );
  // STATUS may call programs of others, and is not asked about what is attached.
  const calls = afterDel === undefined ? [{ ...invocation, command: "STATUS" as const }] : [];
  const [failure] = collectFailures(
    calls,
    (call) => void openSession({ inEveryVersion: true }).runVerb(plugin, call),
  );
  if (failure instanceof EarlierFailure) plan.warnings.push(errorText(failure));
  // It has words of its own for what holds up a resource.
  else if (failure !== undefined && !isHeldUp) plan.obstacles.push(failure);
  return { ...plan, obstacles: distinct(plan.obstacles) };
}

function planStory(
  plugin: PluginDefinition<PluginConfig>,
  invocation: Invocation,
  prevResult: Result | undefined,
  before: readonly Resource<unknown>[],
  host: Host,
  afterDel?: { hasLink: boolean },
): PlannedStory {
  const conf = plugin.validate(acceptedDocument(plugin, invocation, "ADD"));
  const obstacles = refusalsOf(() => {
    judge(plugin, conf, invocation, () => prevResult);
    requirePrevResult(plugin, () => prevResult);
  });
  const call = { plugin: plugin.name, conf, invocation, prevResult: () => prevResult, host };
  let result: Result = { cniVersion: conf.cniVersion };
  const list = restate(
    call,
    "plan",
    (at) => result = plugin.foresee?.(at) ?? plugin.add(at),
    {
      lease(type) {
        const { result, obstacles: ofIpam } = planLease(type, invocation, host);
        if (afterDel === undefined) obstacles.push(...ofIpam);
        return result;
      },
      before,
      onRefusal: (error) => obstacles.push(error),
    },
  );
  const resources = list.map(({ kind, spec }) => ({ kind: kind.kind, what: kind.describe(spec) }));
  const heldUp = list.flatMap((one) => obstaclesTo(one, host, afterDel?.hasLink === true));
  obstacles.push(...heldUp);
  if (list.some(({ kind }) => kind.isContainerLink)) obstacles.push(...refusalsOfName(invocation.ifName, prevResult));
  const isDelegated = before.some(({ kind }) => kind.isDelegated);
  // Only others know the addresses that they will give out.
  const mayHaveMore = prevResult === undefined || (isDelegated && (prevResult.ips ?? []).length === 0);
  const warnings = list.flatMap(({ kind, spec }) => [
    ...idleLines(kind, spec, host, mayHaveMore),
    ...kind.inTheWay?.(spec, host) ?? [],
  ]);
  return { resources, list, result, obstacles, warnings, isHeldUp: heldUp.length > 0 };
}

/** The kernel has sysctls of these names for all links. */
const NO_LINKS = ["all", "default"];

function refusalsOfName(ifName: string, prevResult: Result | undefined): unknown[] {
  if (NO_LINKS.includes(ifName)) return [`"${ifName}" is the name of no link: invalid argument`];
  return isMadeEarlier(ifName, prevResult) ? [madeEarlier(`"${ifName}" already exists in the container`)] : [];
}

function obstaclesTo({ kind, spec }: Resource<unknown>, host: Host, goesFirst: boolean): unknown[] {
  return refusalsOf(() => {
    if (!(goesFirst && kind.isContainerLink)) kind.requireRoom?.(spec, host);
    kind.judge?.(spec, host);
  });
}

function refusalsOf(work: () => void): unknown[] {
  return collectFailures([work], (one) => one());
}

/** A foreign plugin's result cannot be known, so it has no addresses. */
function planLease(type: string, invocation: Invocation, host: Host): Pick<PluginPlan, "result" | "obstacles"> {
  const found = findPlugin(type, invocation.path);
  if ("own" in found) return planStory(found.own, invocation, undefined, [], host);
  return { result: { cniVersion: "", ips: [] }, obstacles: [] };
}
