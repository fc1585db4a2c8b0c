// Generated from result.schema.ts by compile/validators.ts; change those.
import { address, integer, list, objectOf, prefix, string } from "./decode.ts";
import { dns, route } from "./config.validate.gen.ts";
import type { Result01, Result03, Result10 } from "./result.schema.ts";

const result01Ip4 = objectOf({
  ip: (value, at) => prefix(value, at, (got) => `invalid CIDR address: ${got}`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  routes: (value, at) => list(value, at, route),
}, {}, "ip");

const result01 = objectOf({
  cniVersion: string,
  ip4: result01Ip4,
  ip6: result01Ip4,
  dns: dns,
}, { cniVersion: "" });

const result03InterfacesItem = objectOf({
  name: string,
  mac: string,
  sandbox: string,
}, { name: "" });

const result03IpsItem = objectOf({
  interface: integer,
  address: (value, at) => prefix(value, at, (got) => `invalid CIDR address: ${got}`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  version: string,
}, { version: "" }, "address");

const result03 = objectOf({
  cniVersion: string,
  interfaces: (value, at) => list(value, at, result03InterfacesItem),
  ips: (value, at) => list(value, at, result03IpsItem),
  routes: (value, at) => list(value, at, route),
  dns: dns,
}, { cniVersion: "" });

const result10InterfacesItem = objectOf({
  name: string,
  mac: string,
  sandbox: string,
  mtu: integer,
  socketPath: string,
  pciID: string,
}, { name: "" });

const result10IpsItem = objectOf({
  interface: integer,
  address: (value, at) => prefix(value, at, (got) => `invalid CIDR address: ${got}`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
}, {}, "address");

const result10 = objectOf({
  cniVersion: string,
  interfaces: (value, at) => list(value, at, result10InterfacesItem),
  ips: (value, at) => list(value, at, result10IpsItem),
  routes: (value, at) => list(value, at, route),
  dns: dns,
}, { cniVersion: "" });

export function decodeResult01(document: unknown): Result01 {
  return result01(document ?? {}, "");
}

export function decodeResult03(document: unknown): Result03 {
  return result03(document ?? {}, "");
}

export function decodeResult10(document: unknown): Result10 {
  return result10(document ?? {}, "");
}
