/** `create`: checks that containers can be attached to the network, and returns what podman keeps of it. */
import { errorText } from "../../cni/error.ts";
import { describeFinding, lintNetwork } from "../../runtime/lint/lint.ts";
import { nextSteps } from "../answers/next-steps.ts";
import { networkProblems } from "../../runtime/network-summary.ts";
import type { PodmanNetwork } from "../../interop/podman-documents/netavark.schema.ts";
import { chosenNetwork, runtimeFor } from "./chosen-network.ts";

/** podman keeps its own value of a key that is left out. */
export function createNetwork(podman: PodmanNetwork): PodmanNetwork {
  const runtime = runtimeFor(podman), { pluginPath } = runtime, { network } = chosenNetwork(podman, runtime);
  refuseUnused(podman);
  const errors = lintNetwork(network.path!, pluginPath).filter(({ severity }) => severity === "error");
  const problems = errors.length > 0 ? errors.map(describeFinding) : networkProblems(network, pluginPath);
  const steps = problems.flatMap((problem) => nextSteps(problem, network.name));
  if (problems.length > 0) throw new Error([...problems.map(errorText), ...new Set(steps)].join("; "));
  return { ...podman, dns_enabled: false, ipam_options: { ...podman.ipam_options, driver: "none" } };
}

const OTHERWISE = "the conflist says all of the network; change its file";

/** Refuses options that the network's file would overrule. */
function refuseUnused(podman: PodmanNetwork): void {
  const { subnets = [], routes = [], network_dns_servers = [], ipv6_enabled, internal, network_interface } = podman;
  const refuse = (what: string, why = OTHERWISE) => new Error(`${what}: ${why}`);
  if (network_dns_servers.length > 0) {
    throw refuse(`network_dns_servers ${network_dns_servers.join(", ")}`, "there is no DNS server for this network");
  }
  if (internal) throw refuse("internal");
  if (network_interface) throw refuse(`network_interface "${network_interface}"`);
  const driver = podman.ipam_options?.["driver"] ?? "";
  if (!["", "none"].includes(driver)) throw refuse(`ipam driver "${driver}"`);
  if (subnets.length > 0) throw refuse(`subnet ${subnets.map(({ subnet }) => subnet).join(", ")}`);
  if (ipv6_enabled) throw refuse("ipv6_enabled");
  if (routes.length > 0) throw refuse(`route ${routes[0]!.destination}`);
}
