// Generated from netavark.schema.ts by compile/validators.ts; change those.
import { boolean, foldKey, inside, integer, list, map, missing, object, string } from "../../cni/decode.ts";
import type { ContainerCall, Creation, NamedAttachment, PluginCall, PluginStatus, PodmanNetwork as Network } from "../../documents/netavark.schema.ts";

export function decodeNetwork(document: unknown): Network {
  return network(document ?? {}, "");
}

export function decodePluginCall(document: unknown): PluginCall {
  return pluginCall(document ?? {}, "");
}

export function decodeContainerCall(document: unknown): ContainerCall {
  return containerCall(document ?? {}, "");
}

export function decodeNamedAttachment(document: unknown): NamedAttachment {
  return namedAttachment(document ?? {}, "");
}

export function decodePluginStatus(document: unknown): PluginStatus {
  return pluginStatus(document ?? {}, "");
}

export function decodeCreation(document: unknown): Creation {
  return creation(document ?? {}, "");
}

type NetworkSubnetsItemLeaseRangeShape = {
  "start_ip"?: string;
  "end_ip"?: string;
};

function networkSubnetsItemLeaseRange(document: unknown, at: string): NetworkSubnetsItemLeaseRangeShape {
  const source = object(document, at);
  const out: Partial<NetworkSubnetsItemLeaseRangeShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "start_ip":
        out.start_ip = string(value, inside(at, "start_ip"));
        break;
      case "end_ip":
        out.end_ip = string(value, inside(at, "end_ip"));
        break;
    }
  }
  return out as NetworkSubnetsItemLeaseRangeShape;
}

type NetworkSubnetsItemShape = {
  "subnet": string;
  "gateway"?: string;
  "lease_range"?: NetworkSubnetsItemLeaseRangeShape;
};

function networkSubnetsItem(document: unknown, at: string): NetworkSubnetsItemShape {
  const source = object(document, at);
  const out: Partial<NetworkSubnetsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "subnet":
        out.subnet = string(value, inside(at, "subnet"));
        break;
      case "gateway":
        out.gateway = string(value, inside(at, "gateway"));
        break;
      case "lease_range":
        out.lease_range = networkSubnetsItemLeaseRange(value, inside(at, "lease_range"));
        break;
    }
  }
  if (out.subnet === undefined) throw missing(inside(at, "subnet"));
  return out as NetworkSubnetsItemShape;
}

type NetworkRoutesItemShape = {
  "destination": string;
  "gateway"?: string;
  "metric"?: number;
  "route_type"?: string;
};

function networkRoutesItem(document: unknown, at: string): NetworkRoutesItemShape {
  const source = object(document, at);
  const out: Partial<NetworkRoutesItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "destination":
        out.destination = string(value, inside(at, "destination"));
        break;
      case "gateway":
        out.gateway = string(value, inside(at, "gateway"));
        break;
      case "metric":
        out.metric = integer(value, inside(at, "metric"));
        break;
      case "route_type":
        out.route_type = string(value, inside(at, "route_type"));
        break;
    }
  }
  if (out.destination === undefined) throw missing(inside(at, "destination"));
  return out as NetworkRoutesItemShape;
}

type NetworkShape = {
  "name": string;
  "id": string;
  "driver": string;
  "created"?: string;
  "dns_enabled": boolean;
  "internal": boolean;
  "ipv6_enabled": boolean;
  "network_interface"?: string;
  "options"?: Record<string, string>;
  "ipam_options"?: Record<string, string>;
  "subnets"?: Array<NetworkSubnetsItemShape>;
  "routes"?: Array<NetworkRoutesItemShape>;
  "network_dns_servers"?: Array<string>;
  "labels"?: Record<string, string>;
};

function network(document: unknown, at: string): NetworkShape {
  const source = object(document, at);
  const out: Partial<NetworkShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "id":
        out.id = string(value, inside(at, "id"));
        break;
      case "driver":
        out.driver = string(value, inside(at, "driver"));
        break;
      case "created":
        out.created = string(value, inside(at, "created"));
        break;
      case "dns_enabled":
        out.dns_enabled = boolean(value, inside(at, "dns_enabled"));
        break;
      case "internal":
        out.internal = boolean(value, inside(at, "internal"));
        break;
      case "ipv6_enabled":
        out.ipv6_enabled = boolean(value, inside(at, "ipv6_enabled"));
        break;
      case "network_interface":
        out.network_interface = string(value, inside(at, "network_interface"));
        break;
      case "options":
        out.options = map(value, inside(at, "options"), string);
        break;
      case "ipam_options":
        out.ipam_options = map(value, inside(at, "ipam_options"), string);
        break;
      case "subnets":
        out.subnets = list(value, inside(at, "subnets"), networkSubnetsItem);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), networkRoutesItem);
        break;
      case "network_dns_servers":
        out.network_dns_servers = list(value, inside(at, "network_dns_servers"), string);
        break;
      case "labels":
        out.labels = map(value, inside(at, "labels"), string);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  if (out.id === undefined) throw missing(inside(at, "id"));
  if (out.driver === undefined) throw missing(inside(at, "driver"));
  if (out.dns_enabled === undefined) throw missing(inside(at, "dns_enabled"));
  if (out.internal === undefined) throw missing(inside(at, "internal"));
  if (out.ipv6_enabled === undefined) throw missing(inside(at, "ipv6_enabled"));
  return out as NetworkShape;
}

type PluginCallPortMappingsItemShape = {
  "container_port": number;
  "host_port": number;
  "range": number;
  "host_ip": string;
  "protocol": string;
};

function pluginCallPortMappingsItem(document: unknown, at: string): PluginCallPortMappingsItemShape {
  const source = object(document, at);
  const out: Partial<PluginCallPortMappingsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "container_port":
        out.container_port = integer(value, inside(at, "container_port"));
        break;
      case "host_port":
        out.host_port = integer(value, inside(at, "host_port"));
        break;
      case "range":
        out.range = integer(value, inside(at, "range"));
        break;
      case "host_ip":
        out.host_ip = string(value, inside(at, "host_ip"));
        break;
      case "protocol":
        out.protocol = string(value, inside(at, "protocol"));
        break;
    }
  }
  if (out.container_port === undefined) throw missing(inside(at, "container_port"));
  if (out.host_port === undefined) throw missing(inside(at, "host_port"));
  if (out.range === undefined) throw missing(inside(at, "range"));
  if (out.host_ip === undefined) throw missing(inside(at, "host_ip"));
  if (out.protocol === undefined) throw missing(inside(at, "protocol"));
  return out as PluginCallPortMappingsItemShape;
}

type PluginCallNetworkOptionsShape = {
  "interface_name": string;
  "aliases"?: Array<string>;
  "static_ips"?: Array<string>;
  "static_mac"?: string;
  "options"?: Record<string, string>;
};

function pluginCallNetworkOptions(document: unknown, at: string): PluginCallNetworkOptionsShape {
  const source = object(document, at);
  const out: Partial<PluginCallNetworkOptionsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "interface_name":
        out.interface_name = string(value, inside(at, "interface_name"));
        break;
      case "aliases":
        out.aliases = list(value, inside(at, "aliases"), string);
        break;
      case "static_ips":
        out.static_ips = list(value, inside(at, "static_ips"), string);
        break;
      case "static_mac":
        out.static_mac = string(value, inside(at, "static_mac"));
        break;
      case "options":
        out.options = map(value, inside(at, "options"), string);
        break;
    }
  }
  if (out.interface_name === undefined) throw missing(inside(at, "interface_name"));
  return out as PluginCallNetworkOptionsShape;
}

type PluginCallShape = {
  "container_id": string;
  "container_name": string;
  "port_mappings"?: Array<PluginCallPortMappingsItemShape>;
  "network": NetworkShape;
  "network_options": PluginCallNetworkOptionsShape;
};

function pluginCall(document: unknown, at: string): PluginCallShape {
  const source = object(document, at);
  const out: Partial<PluginCallShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "container_id":
        out.container_id = string(value, inside(at, "container_id"));
        break;
      case "container_name":
        out.container_name = string(value, inside(at, "container_name"));
        break;
      case "port_mappings":
        out.port_mappings = list(value, inside(at, "port_mappings"), pluginCallPortMappingsItem);
        break;
      case "network":
        out.network = network(value, inside(at, "network"));
        break;
      case "network_options":
        out.network_options = pluginCallNetworkOptions(value, inside(at, "network_options"));
        break;
    }
  }
  if (out.container_id === undefined) throw missing(inside(at, "container_id"));
  if (out.container_name === undefined) throw missing(inside(at, "container_name"));
  if (out.network === undefined) throw missing(inside(at, "network"));
  if (out.network_options === undefined) throw missing(inside(at, "network_options"));
  return out as PluginCallShape;
}

type ContainerCallShape = {
  "container_id": string;
  "container_name": string;
  "container_hostname"?: string;
  "port_mappings"?: Array<PluginCallPortMappingsItemShape>;
  "dns_servers"?: Array<string>;
  "network_info": Record<string, NetworkShape>;
};

function containerCall(document: unknown, at: string): ContainerCallShape {
  const source = object(document, at);
  const out: Partial<ContainerCallShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "container_id":
        out.container_id = string(value, inside(at, "container_id"));
        break;
      case "container_name":
        out.container_name = string(value, inside(at, "container_name"));
        break;
      case "container_hostname":
        out.container_hostname = string(value, inside(at, "container_hostname"));
        break;
      case "port_mappings":
        out.port_mappings = list(value, inside(at, "port_mappings"), pluginCallPortMappingsItem);
        break;
      case "dns_servers":
        out.dns_servers = list(value, inside(at, "dns_servers"), string);
        break;
      case "network_info":
        out.network_info = map(value, inside(at, "network_info"), network);
        break;
    }
  }
  if (out.container_id === undefined) throw missing(inside(at, "container_id"));
  if (out.container_name === undefined) throw missing(inside(at, "container_name"));
  if (out.network_info === undefined) throw missing(inside(at, "network_info"));
  return out as ContainerCallShape;
}

type NamedAttachmentShape = {
  "name": string;
  "interface_name": string;
  "aliases"?: Array<string>;
  "static_ips"?: Array<string>;
  "static_mac"?: string;
  "options"?: Record<string, string>;
};

function namedAttachment(document: unknown, at: string): NamedAttachmentShape {
  const source = object(document, at);
  const out: Partial<NamedAttachmentShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "interface_name":
        out.interface_name = string(value, inside(at, "interface_name"));
        break;
      case "aliases":
        out.aliases = list(value, inside(at, "aliases"), string);
        break;
      case "static_ips":
        out.static_ips = list(value, inside(at, "static_ips"), string);
        break;
      case "static_mac":
        out.static_mac = string(value, inside(at, "static_mac"));
        break;
      case "options":
        out.options = map(value, inside(at, "options"), string);
        break;
    }
  }
  if (out.name === undefined) throw missing(inside(at, "name"));
  if (out.interface_name === undefined) throw missing(inside(at, "interface_name"));
  return out as NamedAttachmentShape;
}

type PluginStatusInterfacesValueSubnetsItemShape = {
  "ipnet": string;
  "gateway"?: string;
};

function pluginStatusInterfacesValueSubnetsItem(document: unknown, at: string): PluginStatusInterfacesValueSubnetsItemShape {
  const source = object(document, at);
  const out: Partial<PluginStatusInterfacesValueSubnetsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ipnet":
        out.ipnet = string(value, inside(at, "ipnet"));
        break;
      case "gateway":
        out.gateway = string(value, inside(at, "gateway"));
        break;
    }
  }
  if (out.ipnet === undefined) throw missing(inside(at, "ipnet"));
  return out as PluginStatusInterfacesValueSubnetsItemShape;
}

type PluginStatusInterfacesValueShape = {
  "mac_address": string;
  "subnets"?: Array<PluginStatusInterfacesValueSubnetsItemShape>;
};

function pluginStatusInterfacesValue(document: unknown, at: string): PluginStatusInterfacesValueShape {
  const source = object(document, at);
  const out: Partial<PluginStatusInterfacesValueShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "mac_address":
        out.mac_address = string(value, inside(at, "mac_address"));
        break;
      case "subnets":
        out.subnets = list(value, inside(at, "subnets"), pluginStatusInterfacesValueSubnetsItem);
        break;
    }
  }
  if (out.mac_address === undefined) throw missing(inside(at, "mac_address"));
  return out as PluginStatusInterfacesValueShape;
}

type PluginStatusShape = {
  "dns_search_domains"?: Array<string>;
  "dns_server_ips"?: Array<string>;
  "interfaces"?: Record<string, PluginStatusInterfacesValueShape>;
};

function pluginStatus(document: unknown, at: string): PluginStatusShape {
  const source = object(document, at);
  const out: Partial<PluginStatusShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "dns_search_domains":
        out.dns_search_domains = list(value, inside(at, "dns_search_domains"), string);
        break;
      case "dns_server_ips":
        out.dns_server_ips = list(value, inside(at, "dns_server_ips"), string);
        break;
      case "interfaces":
        out.interfaces = map(value, inside(at, "interfaces"), pluginStatusInterfacesValue);
        break;
    }
  }
  return out as PluginStatusShape;
}

type CreationUsedShape = {
  "interfaces": Array<string>;
  "names": Record<string, string>;
  "subnets": Array<string>;
};

function creationUsed(document: unknown, at: string): CreationUsedShape {
  const source = object(document, at);
  const out: Partial<CreationUsedShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "interfaces":
        out.interfaces = list(value, inside(at, "interfaces"), string);
        break;
      case "names":
        out.names = map(value, inside(at, "names"), string);
        break;
      case "subnets":
        out.subnets = list(value, inside(at, "subnets"), string);
        break;
    }
  }
  if (out.interfaces === undefined) throw missing(inside(at, "interfaces"));
  if (out.names === undefined) throw missing(inside(at, "names"));
  if (out.subnets === undefined) throw missing(inside(at, "subnets"));
  return out as CreationUsedShape;
}

type CreationOptionsSubnetPoolsItemShape = {
  "base": string;
  "size": number;
};

function creationOptionsSubnetPoolsItem(document: unknown, at: string): CreationOptionsSubnetPoolsItemShape {
  const source = object(document, at);
  const out: Partial<CreationOptionsSubnetPoolsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "base":
        out.base = string(value, inside(at, "base"));
        break;
      case "size":
        out.size = integer(value, inside(at, "size"));
        break;
    }
  }
  if (out.base === undefined) throw missing(inside(at, "base"));
  if (out.size === undefined) throw missing(inside(at, "size"));
  return out as CreationOptionsSubnetPoolsItemShape;
}

type CreationOptionsShape = {
  "subnet_pools": Array<CreationOptionsSubnetPoolsItemShape>;
  "default_interface_name"?: string;
  "check_used_subnets": boolean;
};

function creationOptions(document: unknown, at: string): CreationOptionsShape {
  const source = object(document, at);
  const out: Partial<CreationOptionsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "subnet_pools":
        out.subnet_pools = list(value, inside(at, "subnet_pools"), creationOptionsSubnetPoolsItem);
        break;
      case "default_interface_name":
        out.default_interface_name = string(value, inside(at, "default_interface_name"));
        break;
      case "check_used_subnets":
        out.check_used_subnets = boolean(value, inside(at, "check_used_subnets"));
        break;
    }
  }
  if (out.subnet_pools === undefined) throw missing(inside(at, "subnet_pools"));
  if (out.check_used_subnets === undefined) throw missing(inside(at, "check_used_subnets"));
  return out as CreationOptionsShape;
}

type CreationShape = {
  "network": NetworkShape;
  "used": CreationUsedShape;
  "options": CreationOptionsShape;
};

function creation(document: unknown, at: string): CreationShape {
  const source = object(document, at);
  const out: Partial<CreationShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "network":
        out.network = network(value, inside(at, "network"));
        break;
      case "used":
        out.used = creationUsed(value, inside(at, "used"));
        break;
      case "options":
        out.options = creationOptions(value, inside(at, "options"));
        break;
    }
  }
  if (out.network === undefined) throw missing(inside(at, "network"));
  if (out.used === undefined) throw missing(inside(at, "used"));
  if (out.options === undefined) throw missing(inside(at, "options"));
  return out as CreationShape;
}
