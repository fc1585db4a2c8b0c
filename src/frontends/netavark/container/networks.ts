/** `netavark setup` and `teardown`: the networks of a container, one after the other. */
import { leaveWhatMayWait, type PluginToCall, requireCaller } from "../../../process/calls.ts";
import { whileDirectoryLocked } from "../../../process/lock.ts";
import { checkContainerId, checkIfName, checkNetworkName } from "../../../cni/invocation.ts";
import { attempt } from "../../../contract/failures.ts";
import { closeFile } from "../../../ffi/files.ts";
import { openNetns } from "../../../ffi/netns.ts";
import { attachAllOrNone } from "../../../runtime/container-networks.ts";
import { inSession } from "../../../runtime/plugin-call.ts";
import { refuseLoop } from "../../../resources/netavark/aardvark-names/names.ts";
import type { StatusBlock } from "../../../interop/podman-documents/status-block.ts";
import type { NamedAttachment } from "../../../interop/podman-documents/netavark.schema.ts";
import { isNetavarksDriver } from "../../../interop/podman-documents/drivers.ts";
import type { CheckedCall } from "../../../interop/podman-documents/container-call.ts";
import { PortTaken } from "../../../resources/netavark/published-ports.ts";
import { failureText, within } from "../../../resources/netavark/shared/failure.ts";
import { log } from "../../../resources/netavark/shared/log.ts";
import type { ContainerNetwork, Driver, NetavarkSettings } from "./driver.ts";
import { removeStaleAttachment, removeStaleAttachments } from "./stale.ts";
import { foreignDriver } from "./foreign-driver.ts";
import { driverToSetUp, driverToTearDown } from "./own-driver.ts";

/** No CNI_PATH: the plugins are in this program. */
const OWN_PLUGINS = "";

/** Attaches all networks or none. Returns what podman shows of each, by its name. */
export function setUpNetworks(
  call: CheckedCall,
  netnsPath: string,
  settings: NetavarkSettings,
): Record<string, StatusBlock> {
  within("invalid namespace path", () => closeFile(openNetns(netnsPath)));
  checkContainerId(call.container_id);
  const all = call.attachments.map((attachment) => {
    const containerNetwork = containerNetworkOf(call, attachment);
    return { containerNetwork, driver: driverOf(containerNetwork, settings, driverToSetUp) };
  });
  const drivers = all.map(({ driver }) => driver);
  refuseLoops(call, drivers);
  leaveWhatMayWait(pluginsOf(drivers), OWN_PLUGINS);
  return whileDirectoryLocked(settings.configDirectory, () => {
    removeStaleAttachments();
    return attachOverStale(all, netnsPath);
  });
}

/** Each try again is after an attachment that was in the way has gone. */
function attachOverStale(all: Attaching[], netnsPath: string): Record<string, StatusBlock> {
  try {
    return attachAll(all, netnsPath);
  } catch (error) {
    if (!(error instanceof PortTaken && removeStaleAttachment(error.holder))) throw error;
    return attachOverStale(all, netnsPath);
  }
}

interface Attaching {
  containerNetwork: ContainerNetwork;
  driver: Driver;
}

function attachAll(all: Attaching[], netnsPath: string): Record<string, StatusBlock> {
  const blocks: Record<string, StatusBlock> = Object.create(null);
  inSession((session) =>
    attachAllOrNone(all, {
      attach({ containerNetwork, driver }) {
        blocks[containerNetwork.network.name] = driver.setUp(session, netnsPath);
      },
      finish() {
        requireCaller();
      },
      takeBack: ({ driver }) => driver.tearDown(session, netnsPath),
      errorOf: (error, notTakenBack) => joined([error, ...notTakenBack]),
    })
  );
  return blocks;
}

/** Continues after a failure. */
export function tearDownNetworks(call: CheckedCall, netnsPath: string, settings: NetavarkSettings): void {
  checkContainerId(call.container_id);
  const failures: unknown[] = [], drivers: Driver[] = [];
  for (const attachment of call.attachments) {
    attempt(failures, () => drivers.push(driverOf(containerNetworkOf(call, attachment), settings, driverToTearDown)));
  }
  leaveWhatMayWait(pluginsOf(drivers), OWN_PLUGINS);
  try {
    closeFile(openNetns(netnsPath));
  } catch (error) {
    log("warn", "netavark::commands::teardown", `container netns not found: ${failureText(error)}`);
  }
  whileDirectoryLocked(settings.configDirectory, () => {
    for (const { yieldPorts } of drivers) attempt(failures, () => yieldPorts?.());
    inSession((session) => {
      for (const driver of drivers) attempt(failures, () => driver.tearDown(session, netnsPath));
    });
  });
  if (failures.length > 0) throw joined(failures);
}

function pluginsOf(drivers: readonly Driver[]): PluginToCall[] {
  return drivers.flatMap(({ plugin }) => plugin ?? []);
}

function containerNetworkOf(call: CheckedCall, attachment: NamedAttachment): ContainerNetwork {
  const network = Object.hasOwn(call.network_info, attachment.name) ? call.network_info[attachment.name] : undefined;
  if (network === undefined) throw new Error(`network info for network ${attachment.name} not found`);
  checkNetworkName(network.name);
  checkIfName(attachment.interface_name);
  return { network, attachment, call };
}

function driverOf(containerNetwork: ContainerNetwork, settings: NetavarkSettings, own: typeof driverToSetUp): Driver {
  if (isNetavarksDriver(containerNetwork.network.driver)) return own(containerNetwork, settings);
  return foreignDriver(containerNetwork, settings.pluginDirectories);
}

function refuseLoops({ dns_servers: servers = [] }: CheckedCall, drivers: readonly Driver[]): void {
  const networks = drivers.flatMap(({ names }) => names ?? []);
  within("error while applying dns entries", () => refuseLoop({ servers, networks }));
}

/** Joins failures as netavark does. */
function joined(failures: readonly unknown[]): unknown {
  if (failures.length === 1) return failures[0];
  return new Error(
    `netavark encountered multiple errors:${failures.map((each) => `\n\t- ${failureText(each)}`).join("")}`,
  );
}
