/** A network whose driver is a plugin: `setup` and `teardown` are the plugin's. */
import type { PluginCall, PluginStatus } from "../../documents/netavark.schema.ts";
import { checkedAddress, checkedAddresses, checkedPrefix } from "../../documents/network.ts";
import { within } from "../../resources/netavark/shared/failure.ts";
import type { StatusBlock } from "../wire/answer.ts";
import { decodePluginStatus } from "../wire/netavark.validate.gen.ts";
import { inOrder } from "../wire/network-document.ts";
import { pluginName, readAnswer, runPlugin } from "./run-plugin.ts";

/** When it fails, the plugin may have made something: `tearDownByPlugin` has to follow. */
export function setUpByPlugin(path: string, netns: string, call: PluginCall): StatusBlock {
  return failing(path, () => {
    const stdout = runPlugin(path, ["setup", netns], documentOf(call));
    return readAnswer(stdout, (document) => statusOf(decodePluginStatus(document)));
  });
}

/** The namespace need not exist any more. */
export function tearDownByPlugin(path: string, netns: string, call: PluginCall): void {
  failing(path, () => void runPlugin(path, ["teardown", netns], documentOf(call)));
}

function failing<Value>(path: string, work: () => Value): Value {
  return within(`plugin ${JSON.stringify(pluginName(path))} failed`, work);
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
