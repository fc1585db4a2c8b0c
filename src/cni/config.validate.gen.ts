// Generated from config.schema.ts by compile/validators.ts; change those.
import { address, anything, boolean, foldKey, inside, integer, list, map, missing, object, prefix, string, subnet } from "./decode.ts";

export type AddressRangeShape = {
  "subnet"?: string;
  "rangeStart"?: string | undefined;
  "rangeEnd"?: string | undefined;
  "gateway"?: string | undefined;
};

export function addressRange(document: unknown, at: string): AddressRangeShape {
  const source = object(document, at);
  const out: Partial<AddressRangeShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "subnet":
        out.subnet = subnet(value, inside(at, "subnet"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "rangestart":
        out.rangeStart = address(value, inside(at, "rangeStart"), (got) => `invalid IP address: ${got}`);
        break;
      case "rangeend":
        out.rangeEnd = address(value, inside(at, "rangeEnd"), (got) => `invalid IP address: ${got}`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
    }
  }
  return out as AddressRangeShape;
}

export type DnsShape = {
  "nameservers"?: Array<string>;
  "domain"?: string;
  "search"?: Array<string>;
  "options"?: Array<string>;
};

export function dns(document: unknown, at: string): DnsShape {
  const source = object(document, at);
  const out: Partial<DnsShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "nameservers":
        out.nameservers = list(value, inside(at, "nameservers"), string);
        break;
      case "domain":
        out.domain = string(value, inside(at, "domain"));
        break;
      case "search":
        out.search = list(value, inside(at, "search"), string);
        break;
      case "options":
        out.options = list(value, inside(at, "options"), string);
        break;
    }
  }
  return out as DnsShape;
}

export type IpamTypeShape = {
  "type": string;
};

export function ipamType(document: unknown, at: string): IpamTypeShape {
  const source = object(document, at);
  const out: Partial<IpamTypeShape> = { "type": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "type":
        out.type = string(value, inside(at, "type"));
        break;
    }
  }
  return out as IpamTypeShape;
}

export type RouteShape = {
  "dst": string;
  "gw"?: string | undefined;
  "mtu"?: number;
  "advmss"?: number;
  "priority"?: number;
  "table"?: number;
  "scope"?: number;
};

export function route(document: unknown, at: string): RouteShape {
  const source = object(document, at);
  const out: Partial<RouteShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "dst":
        out.dst = prefix(value, inside(at, "dst"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "gw":
        out.gw = address(value, inside(at, "gw"), (got) => `invalid IP address: ${got}`);
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "advmss":
        out.advmss = integer(value, inside(at, "advmss"));
        break;
      case "priority":
        out.priority = integer(value, inside(at, "priority"));
        break;
      case "table":
        out.table = integer(value, inside(at, "table"));
        break;
      case "scope":
        out.scope = integer(value, inside(at, "scope"));
        break;
    }
  }
  if (out.dst === undefined) throw missing(inside(at, "dst"));
  return out as RouteShape;
}

export type ValidAttachmentShape = {
  "containerID": string;
  "ifname": string;
};

export function validAttachment(document: unknown, at: string): ValidAttachmentShape {
  const source = object(document, at);
  const out: Partial<ValidAttachmentShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "containerid":
        out.containerID = string(value, inside(at, "containerID"));
        break;
      case "ifname":
        out.ifname = string(value, inside(at, "ifname"));
        break;
    }
  }
  if (out.containerID === undefined) throw missing(inside(at, "containerID"));
  if (out.ifname === undefined) throw missing(inside(at, "ifname"));
  return out as ValidAttachmentShape;
}

export type CommonKeysShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "capabilities"?: Record<string, boolean>;
  "ipam"?: IpamTypeShape;
  "dns"?: DnsShape;
  "args"?: Record<string, unknown>;
  "runtimeConfig"?: Record<string, unknown>;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
};

export function commonKeys(out: { [Key in keyof CommonKeysShape]?: unknown }, folded: string, value: unknown, at: string): void {
  switch (folded) {
    case "cniversion":
      out.cniVersion = string(value, inside(at, "cniVersion"));
      break;
    case "name":
      out.name = string(value, inside(at, "name"));
      break;
    case "type":
      out.type = string(value, inside(at, "type"));
      break;
    case "capabilities":
      out.capabilities = map(value, inside(at, "capabilities"), boolean);
      break;
    case "ipam":
      out.ipam = ipamType(value, inside(at, "ipam"));
      break;
    case "dns":
      out.dns = dns(value, inside(at, "dns"));
      break;
    case "args":
      out.args = map(value, inside(at, "args"), anything);
      break;
    case "runtimeconfig":
      out.runtimeConfig = map(value, inside(at, "runtimeConfig"), anything);
      break;
    case "prevresult":
      out.prevResult = map(value, inside(at, "prevResult"), anything);
      break;
    case "cni.dev/valid-attachments":
      out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
      break;
  }
}

export type IpamPluginKeysShape = {
  "cniVersion": string;
  "name": string;
  "type": string;
  "prevResult"?: Record<string, unknown>;
  "cni.dev/valid-attachments"?: Array<ValidAttachmentShape>;
};

export function ipamPluginKeys(out: { [Key in keyof IpamPluginKeysShape]?: unknown }, folded: string, value: unknown, at: string): void {
  switch (folded) {
    case "cniversion":
      out.cniVersion = string(value, inside(at, "cniVersion"));
      break;
    case "name":
      out.name = string(value, inside(at, "name"));
      break;
    case "type":
      out.type = string(value, inside(at, "type"));
      break;
    case "prevresult":
      out.prevResult = map(value, inside(at, "prevResult"), anything);
      break;
    case "cni.dev/valid-attachments":
      out["cni.dev/valid-attachments"] = list(value, inside(at, "cni.dev/valid-attachments"), validAttachment);
      break;
  }
}
