/** What `create` refuses of every network, whatever its driver. */
import type { PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
const ID = /^[0-9a-fA-F]{64}$/;
/** IFNAMSIZ without the final NUL (linux/if.h). */
const INTERFACE_NAME_MAX = 15;

export function refuseBadIdentity(
  { name, id }: { name: string; id: string },
  taken: Readonly<Record<string, string>>,
): void {
  if (name === "") throw new Error("Network name must be supplied");
  if (!NAME.test(name)) {
    throw new Error(
      `Invalid characters in network name ${JSON.stringify(name)}: must match [a-zA-Z0-9][a-zA-Z0-9_.-]*`,
    );
  }
  // podman looks for these words.
  if (Object.hasOwn(taken, name)) throw new Error(`network already exists ${name}`);
  if (id === "") throw new Error("Network id must be supplied");
  if (!ID.test(id)) throw new Error(`Network id must be a hexadecimal string ${JSON.stringify(id)}`);
}

export function refuseBadInterfaceName(name: string): void {
  if (new TextEncoder().encode(name).length > INTERFACE_NAME_MAX) {
    throw new Error(
      `Interface name is too long: interface names must be ${INTERFACE_NAME_MAX} characters or less: ${name}`,
    );
  }
  if (name === "." || name === "..") throw new Error("Interface name cannot be . or ..");
  const bad = /[/:\s]/.exec(name)?.[0];
  if (bad !== undefined) throw new Error(`Interface name cannot contain ${JSON.stringify(bad)}: ${name}`);
}

export function refuseBadBridgeName(name: string): void {
  if (!NAME.test(name)) throw new Error(`bridge name ${name} is invalid`);
}

const IPAM_DRIVERS = ["", "host-local", "dhcp", "none"];

export function refuseBadIpam(
  { ipam_options: options, subnets }: Pick<PodmanNetwork, "ipam_options" | "subnets">,
): void {
  const driver = options?.["driver"] ?? "";
  if (!IPAM_DRIVERS.includes(driver)) throw new Error(`Unsupported ipam driver: ${driver}`);
  if (driver === "none" && (subnets ?? []).length > 0) {
    throw new Error("None ipam driver is set but subnets are given");
  }
}
