// Generated from result.schema.ts by compile/validators.ts; change those.
import { address, foldKey, inside, integer, list, missing, object, prefix, string } from "./decode.ts";
import { type DnsShape, type RouteShape, dns, route } from "./config.validate.gen.ts";
import type { Result01, Result03, Result10 } from "./result.schema.ts";

export function decodeResult01(document: unknown): Result01 {
  return result01(document ?? {}, "");
}

export function decodeResult03(document: unknown): Result03 {
  return result03(document ?? {}, "");
}

export function decodeResult10(document: unknown): Result10 {
  return result10(document ?? {}, "");
}

type Result01Ip4Shape = {
  "ip": string;
  "gateway"?: string | undefined;
  "routes"?: Array<RouteShape>;
};

function result01Ip4(document: unknown, at: string): Result01Ip4Shape {
  const source = object(document, at);
  const out: Partial<Result01Ip4Shape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "ip":
        out.ip = prefix(value, inside(at, "ip"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), route);
        break;
    }
  }
  if (out.ip === undefined) throw missing(inside(at, "ip"));
  return out as Result01Ip4Shape;
}

type Result01Shape = {
  "cniVersion": string;
  "ip4"?: Result01Ip4Shape;
  "ip6"?: Result01Ip4Shape;
  "dns"?: DnsShape;
};

function result01(document: unknown, at: string): Result01Shape {
  const source = object(document, at);
  const out: Partial<Result01Shape> = { "cniVersion": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cniversion":
        out.cniVersion = string(value, inside(at, "cniVersion"));
        break;
      case "ip4":
        out.ip4 = result01Ip4(value, inside(at, "ip4"));
        break;
      case "ip6":
        out.ip6 = result01Ip4(value, inside(at, "ip6"));
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
        break;
    }
  }
  return out as Result01Shape;
}

type Result03InterfacesItemShape = {
  "name": string;
  "mac"?: string;
  "sandbox"?: string;
};

function result03InterfacesItem(document: unknown, at: string): Result03InterfacesItemShape {
  const source = object(document, at);
  const out: Partial<Result03InterfacesItemShape> = { "name": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "sandbox":
        out.sandbox = string(value, inside(at, "sandbox"));
        break;
    }
  }
  return out as Result03InterfacesItemShape;
}

type Result03IpsItemShape = {
  "interface"?: number;
  "address": string;
  "gateway"?: string | undefined;
  "version": string;
};

function result03IpsItem(document: unknown, at: string): Result03IpsItemShape {
  const source = object(document, at);
  const out: Partial<Result03IpsItemShape> = { "version": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "interface":
        out.interface = integer(value, inside(at, "interface"));
        break;
      case "address":
        out.address = prefix(value, inside(at, "address"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
      case "version":
        out.version = string(value, inside(at, "version"));
        break;
    }
  }
  if (out.address === undefined) throw missing(inside(at, "address"));
  return out as Result03IpsItemShape;
}

type Result03Shape = {
  "cniVersion": string;
  "interfaces"?: Array<Result03InterfacesItemShape>;
  "ips"?: Array<Result03IpsItemShape>;
  "routes"?: Array<RouteShape>;
  "dns"?: DnsShape;
};

function result03(document: unknown, at: string): Result03Shape {
  const source = object(document, at);
  const out: Partial<Result03Shape> = { "cniVersion": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cniversion":
        out.cniVersion = string(value, inside(at, "cniVersion"));
        break;
      case "interfaces":
        out.interfaces = list(value, inside(at, "interfaces"), result03InterfacesItem);
        break;
      case "ips":
        out.ips = list(value, inside(at, "ips"), result03IpsItem);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), route);
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
        break;
    }
  }
  return out as Result03Shape;
}

type Result10InterfacesItemShape = {
  "name": string;
  "mac"?: string;
  "sandbox"?: string;
  "mtu"?: number;
  "socketPath"?: string;
  "pciID"?: string;
};

function result10InterfacesItem(document: unknown, at: string): Result10InterfacesItemShape {
  const source = object(document, at);
  const out: Partial<Result10InterfacesItemShape> = { "name": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "name":
        out.name = string(value, inside(at, "name"));
        break;
      case "mac":
        out.mac = string(value, inside(at, "mac"));
        break;
      case "sandbox":
        out.sandbox = string(value, inside(at, "sandbox"));
        break;
      case "mtu":
        out.mtu = integer(value, inside(at, "mtu"));
        break;
      case "socketpath":
        out.socketPath = string(value, inside(at, "socketPath"));
        break;
      case "pciid":
        out.pciID = string(value, inside(at, "pciID"));
        break;
    }
  }
  return out as Result10InterfacesItemShape;
}

type Result10IpsItemShape = {
  "interface"?: number;
  "address": string;
  "gateway"?: string | undefined;
};

function result10IpsItem(document: unknown, at: string): Result10IpsItemShape {
  const source = object(document, at);
  const out: Partial<Result10IpsItemShape> = {};
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "interface":
        out.interface = integer(value, inside(at, "interface"));
        break;
      case "address":
        out.address = prefix(value, inside(at, "address"), (got) => `invalid CIDR address: ${got}`);
        break;
      case "gateway":
        out.gateway = address(value, inside(at, "gateway"), (got) => `invalid IP address: ${got}`);
        break;
    }
  }
  if (out.address === undefined) throw missing(inside(at, "address"));
  return out as Result10IpsItemShape;
}

type Result10Shape = {
  "cniVersion": string;
  "interfaces"?: Array<Result10InterfacesItemShape>;
  "ips"?: Array<Result10IpsItemShape>;
  "routes"?: Array<RouteShape>;
  "dns"?: DnsShape;
};

function result10(document: unknown, at: string): Result10Shape {
  const source = object(document, at);
  const out: Partial<Result10Shape> = { "cniVersion": "" };
  for (const key of Object.keys(source)) {
    const value = source[key];
    if (value === null) continue;
    switch (foldKey(key)) {
      case "cniversion":
        out.cniVersion = string(value, inside(at, "cniVersion"));
        break;
      case "interfaces":
        out.interfaces = list(value, inside(at, "interfaces"), result10InterfacesItem);
        break;
      case "ips":
        out.ips = list(value, inside(at, "ips"), result10IpsItem);
        break;
      case "routes":
        out.routes = list(value, inside(at, "routes"), route);
        break;
      case "dns":
        out.dns = dns(value, inside(at, "dns"));
        break;
    }
  }
  return out as Result10Shape;
}
