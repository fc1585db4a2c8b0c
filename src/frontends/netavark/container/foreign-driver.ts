/** A network whose driver is another program (run-foreign-driver.ts): its `setup` and `teardown` do the work. */
import { beforeWaitingFor } from "../../../process/patience.ts";
import { driverName, findForeignDriver, readDriverAnswer, runForeignDriver } from "../run-foreign-driver.ts";
import type { PluginCall, PluginStatus } from "../../../interop/podman-documents/netavark.schema.ts";
import type { ContainerNetwork, Driver } from "./driver.ts";
import type { StatusBlock } from "../../../interop/podman-documents/status-block.ts";
import { within } from "../../../resources/netavark/shared/failure.ts";
import { decodePluginStatus } from "../../../interop/podman-documents/netavark.validate.gen.ts";
import {
  checkedAddress,
  checkedAddresses,
  checkedPrefix,
  inOrder,
} from "../../../interop/podman-documents/network.ts";

export function foreignDriver(
  { network, attachment, call }: ContainerNetwork,
  directories: readonly string[],
): Driver {
  const path = findForeignDriver(directories, network.driver);
  if (path === undefined) throw new Error(`unknown network driver "${network.driver}"`);
  // Before another network of the container is attached.
  beforeWaitingFor("another program");
  const { container_id, container_name, port_mappings } = call, { name: _, ...network_options } = attachment;
  const ofDriver: PluginCall = { container_id, container_name, port_mappings, network, network_options };
  return {
    setUp(_session, netnsPath) {
      try {
        return setUpBy(path, netnsPath, ofDriver);
      } catch (error) {
        // It may have made a part.
        tryTearDown(() => tearDownBy(path, netnsPath, ofDriver));
        throw error;
      }
    },
    tearDown: (_session, netnsPath) => tearDownBy(path, netnsPath, ofDriver),
  };
}

/** The error of `setup` is what counts. */
function tryTearDown(work: () => void): void {
  try {
    work();
  } catch {
    // podman calls `teardown` again.
  }
}

/** When it fails, the driver may have made something: `tearDownBy` must follow. */
export function setUpBy(path: string, netns: string, call: PluginCall): StatusBlock {
  return failing(path, () => {
    const stdout = runForeignDriver(path, ["setup", netns], documentOf(call));
    return readDriverAnswer(stdout, (document) => statusOf(decodePluginStatus(document)));
  });
}

/** The namespace need not exist any more. */
export function tearDownBy(path: string, netns: string, call: PluginCall): void {
  failing(path, () => void runForeignDriver(path, ["teardown", netns], documentOf(call)));
}

function failing<Value>(path: string, work: () => Value): Value {
  return within(`plugin ${JSON.stringify(driverName(path))} failed`, work);
}

/** In netavark's form: null for what is not set, except within the network. */
function documentOf({ container_id, container_name, port_mappings, network, network_options }: PluginCall): object {
  const { aliases, interface_name, static_ips, static_mac, options } = network_options;
  return {
    container_id,
    container_name,
    port_mappings: port_mappings ?? null,
    network: inOrder(network),
    network_options: {
      aliases: aliases ?? null,
      interface_name,
      static_ips: static_ips ?? null,
      static_mac: static_mac ?? null,
      options: options ?? null,
    },
  };
}

/** podman would refuse the whole answer for one bad address. */
function statusOf(status: PluginStatus): StatusBlock {
  const servers = status.dns_server_ips;
  const interfaces: Record<string, StatusBlock["interfaces"][string]> = Object.create(null);
  for (const [name, { mac_address, subnets }] of Object.entries(status.interfaces ?? {})) {
    const at = `interfaces.${name}.subnets`;
    interfaces[name] = {
      mac_address,
      subnets: subnets?.map(({ gateway, ipnet }, index) => ({
        gateway: gateway === undefined ? null : checkedAddress(gateway, `${at}[${index}].gateway`),
        ipnet: checkedPrefix(ipnet, `${at}[${index}].ipnet`),
      })) ?? null,
    };
  }
  return {
    dns_search_domains: status.dns_search_domains ?? null,
    dns_server_ips: servers === undefined ? null : checkedAddresses(servers, "dns_server_ips"),
    interfaces,
  };
}
