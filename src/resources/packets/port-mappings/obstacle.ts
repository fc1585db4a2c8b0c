/** Why port mappings cannot be made on this host, for STATUS; undefined when they can. */
import type { Host } from "../../../contract/host.ts";
import type { Owner } from "../../../contract/owner.ts";
import { backends } from "./port-mappings.ts";
import type { PortMappingsSpec } from "./spec.ts";

export function obstacleTo(
  options: Omit<PortMappingsSpec, keyof Owner | "addresses" | "mappings">,
  host: Host,
): string | undefined {
  const { conditions } = options;
  const example: PortMappingsSpec = {
    ...options,
    network: "",
    containerId: "",
    ifName: "",
    addresses: ["192.0.2.1/32"],
    mappings: [{ protocol: "tcp", hostPort: 1, containerPort: 1 }],
    // Whichever ports the conditions are for.
    conditions: conditions?.[4] && { 4: { ...conditions[4], protocol: undefined, ports: undefined } },
  };
  return backends.obstacle(example, host);
}
