/**
 * `netavark setup` and `teardown`: a container's networks one after the other, then its names.
 */
import { checkContainerId, checkIfName, checkNetworkName } from "../../cni/invocation.ts";
import { attempt } from "../../contract/failures.ts";
import type { CheckedCall } from "../../documents/container-call.ts";
import { closeFile } from "../../ffi/files.ts";
import { whileDirectoryLocked } from "../../ffi/lock.ts";
import { openNetns } from "../../ffi/netns.ts";
import { refuseLoop } from "../../resources/netavark/aardvark-names/names.ts";
import { failureText, within } from "../../resources/netavark/shared/failure.ts";
import { log } from "../../resources/netavark/shared/log.ts";
import { inSession } from "../../runtime/plugin-call.ts";
import type { Surroundings } from "../program/surroundings.ts";
import type { StatusBlock } from "../wire/answer.ts";
import { bridgeDriver } from "./bridge.ts";
import type { Driver, DriverContext, Wanted } from "./driver.ts";
import { removeWhatIsGone } from "./gone.ts";
import { pluginDriver } from "./plugin.ts";
import { vlanDriver } from "./vlan.ts";

interface Attaching {
  wanted: Wanted;
  driver: Driver;
}

/** Answers what podman shows of each network, by its name. All or none. */
export function setUp(
  call: CheckedCall,
  netnsPath: string,
  surroundings: Surroundings,
  context: DriverContext,
): Record<string, StatusBlock> {
  within("invalid namespace path", () => closeFile(openNetns(netnsPath)));
  return whileDirectoryLocked(surroundings.configDirectory, () => {
    removeWhatIsGone();
    const all = wantedOf(call, false).map((wanted) => ({ wanted, driver: driverOf(wanted, context) }));
    refuseLoops(call, all);
    const done: Attaching[] = [], blocks: Record<string, StatusBlock> = Object.create(null);
    return inSession((session) => {
      try {
        for (const each of all) {
          blocks[each.wanted.network.name] = each.driver.setUp(session, netnsPath);
          done.push(each);
        }
        return blocks;
      } catch (error) {
        const failures: unknown[] = [error];
        for (const { driver } of done.toReversed()) attempt(failures, () => driver.tearDown(session, netnsPath));
        throw joined(failures);
      }
    });
  });
}

/** Goes on past what fails. */
export function tearDown(
  call: CheckedCall,
  netnsPath: string,
  surroundings: Surroundings,
  context: DriverContext,
): void {
  const failures: unknown[] = [], all: Attaching[] = [];
  for (const wanted of wantedOf(call, true)) {
    attempt(failures, () => all.push({ wanted, driver: driverOf(wanted, context) }));
  }
  try {
    closeFile(openNetns(netnsPath));
  } catch (error) {
    log("warn", "netavark::commands::teardown", `container netns not found: ${failureText(error)}`);
  }
  whileDirectoryLocked(surroundings.configDirectory, () => {
    inSession((session) => {
      for (const { driver } of all) attempt(failures, () => driver.tearDown(session, netnsPath));
    });
  });
  if (failures.length > 0) throw joined(failures);
}

function wantedOf(call: CheckedCall, isLeaving: boolean): Wanted[] {
  checkContainerId(call.container_id);
  return call.attachments.map((attachment) => {
    const network = Object.hasOwn(call.network_info, attachment.name)
      ? call.network_info[attachment.name]
      : undefined;
    if (network === undefined) throw new Error(`network info for network ${attachment.name} not found`);
    checkNetworkName(network.name);
    checkIfName(attachment.interface_name);
    return { network, attachment, call, isLeaving };
  });
}

function driverOf(wanted: Wanted, context: DriverContext): Driver {
  const { driver } = wanted.network;
  if (driver === "bridge") return bridgeDriver(wanted, context);
  if (driver === "macvlan" || driver === "ipvlan") return vlanDriver(wanted, driver);
  return pluginDriver(wanted, context.pluginDirectories);
}

function refuseLoops({ dns_servers: servers = [] }: CheckedCall, all: readonly Attaching[]): void {
  const networks = all.flatMap(({ driver: { names } }) => names === undefined ? [] : [names]);
  within("error while applying dns entries", () => refuseLoop({ servers, networks }));
}

/** In netavark's form. */
function joined(failures: readonly unknown[]): unknown {
  if (failures.length === 1) return failures[0];
  return new Error(
    `netavark encountered multiple errors:${failures.map((each) => `\n\t- ${failureText(each)}`).join("")}`,
  );
}
