// Generated from config.schema.ts by compile/validators.ts; change those.
import { type Keys, address, anything, boolean, integer, list, map, objectOf, prefix, string, subnet } from "./decode.ts";

export const addressRange = objectOf({
  subnet: (value, at) => subnet(value, at, (got) => `invalid CIDR address: ${got}`),
  rangeStart: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  rangeEnd: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  gateway: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
}, {});

export const dns = objectOf({
  nameservers: (value, at) => list(value, at, string),
  domain: string,
  search: (value, at) => list(value, at, string),
  options: (value, at) => list(value, at, string),
}, {});

export const ipamType = objectOf({
  type: string,
}, { type: "" });

export const route = objectOf({
  dst: (value, at) => prefix(value, at, (got) => `invalid CIDR address: ${got}`),
  gw: (value, at) => address(value, at, (got) => `invalid IP address: ${got}`),
  mtu: integer,
  advmss: integer,
  priority: integer,
  table: integer,
  scope: integer,
}, {}, "dst");

export const validAttachment = objectOf({
  containerID: string,
  ifname: string,
}, {}, "containerID", "ifname");

export const commonKeys = {
  cniVersion: string,
  name: string,
  type: string,
  capabilities: (value, at) => map(value, at, boolean),
  ipam: ipamType,
  dns: dns,
  args: (value, at) => map(value, at, anything),
  runtimeConfig: (value, at) => map(value, at, anything),
  prevResult: (value, at) => map(value, at, anything),
  "cni.dev/valid-attachments": (value, at) => list(value, at, validAttachment),
} satisfies Keys;

export const ipamPluginKeys = {
  cniVersion: string,
  name: string,
  type: string,
  prevResult: (value, at) => map(value, at, anything),
  "cni.dev/valid-attachments": (value, at) => list(value, at, validAttachment),
} satisfies Keys;
