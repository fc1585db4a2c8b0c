/**
 * Reading, converting and printing results of every version of the specification (CNI spec 0.2.0, 0.4.0 and 1.1.0,
 * "Result"). The rest of the program knows only the newest form (result.ts).
 *
 * There are three forms (`ResultFamily` in versions.ts), and conversion goes from neighbour to neighbour. A step loses
 * and keeps what the reference library does, even where the specification differs.
 */
import { CniError, DECODING_FAILURE, INCOMPATIBLE_VERSION } from "./error.ts";
import { decoding } from "./decode.ts";
import { asRead, field, isObject, type ParsedObject, parseDocument } from "./json.ts";
import { goQuote } from "./quote.ts";
import { decodeResult01, decodeResult03, decodeResult10 } from "./result.validate.gen.ts";
import { CURRENT_VERSION, KNOWN_VERSIONS, resultFamily, UNSTATED_VERSION } from "./versions.ts";
import { isV6 } from "../net/address.ts";
import type { Dns, Result, Route } from "./result.ts";
import type { Result01, Result03 } from "./result.schema.ts";

/** A result in the form of its version. */
export type VersionedResult =
  | { readonly family: "0.1"; readonly result: Result01 }
  | { readonly family: "0.3"; readonly result: Result03 }
  | { readonly family: "1.0"; readonly result: Result };

/** The result of the plugins before this one in the chain; undefined for the first. */
export function parsePrevResult(conf: { cniVersion: string; prevResult?: unknown }): Result | undefined {
  const { prevResult } = conf;
  if (prevResult === undefined || prevResult === null) return undefined;
  return decoding("could not parse prevResult", () => {
    // Its own version counts in any spelling of the key, and even when it is empty.
    const unstated = isObject(prevResult) && (field(prevResult, "cniVersion") ?? null) === null;
    const document = unstated ? { ...prevResult, cniVersion: conf.cniVersion } : prevResult;
    return newestResult(readResult(document, conf.cniVersion));
  }, DECODING_FAILURE);
}

/** Reads what a plugin printed on success. Without a version, the configuration's applies. */
export function parsePluginResult(stdout: Uint8Array | string, configVersion: string): VersionedResult {
  const subject = "failed to unmarshal raw result";
  const document = parseDocument(stdout, subject) ?? {};
  if (!isObject(document)) {
    throw new CniError(DECODING_FAILURE, `${subject}: the result must be an object`);
  }
  return readPluginResult(document, configVersion);
}

/** As `parsePluginResult`, for a document that has been parsed. */
export function readPluginResult(document: Record<string, unknown>, configVersion: string): VersionedResult {
  const version = document.cniVersion;
  if (typeof version === "string" && version !== "") return readResult(document, version);
  const assumed = configVersion || UNSTATED_VERSION;
  return readResult({ ...document, cniVersion: assumed }, assumed);
}

/** Reads the document as a result of this version. The version in the document must have the same form. */
export function readResult(document: unknown, version: string): VersionedResult {
  const family = resultFamily(version);
  if (family === undefined) {
    throw new CniError(DECODING_FAILURE, `unsupported CNI result version ${goQuote(version)}`);
  }
  const read = decodeAs(family, document);
  const stated = read.result.cniVersion;
  if (resultFamily(stated) !== family || (stated === "" && family !== "0.1")) {
    // The reference library lists the empty version with the first family.
    const versions = KNOWN_VERSIONS.filter((known) => resultFamily(known) === family);
    const list = (family === "0.1" ? ["", ...versions] : versions).join(" ");
    throw new CniError(
      DECODING_FAILURE,
      `result type supports [${list}] but unmarshalled CNIVersion is ${goQuote(stated)}`,
    );
  }
  if (stated === "") read.result.cniVersion = UNSTATED_VERSION;
  return read;
}

function decodeAs(family: VersionedResult["family"], document: unknown): VersionedResult {
  switch (family) {
    case "0.1":
      return { family, result: decodeResult01(document) };
    case "0.3":
      return { family, result: decodeResult03(document) };
    case "1.0":
      return { family, result: decodeResult10(document) };
  }
}

/** The result in the newest form; `cniVersion` says 1.1.0. */
export function newestResult(from: VersionedResult): Result {
  return convertResult(from, CURRENT_VERSION).result as Result;
}

/** Throws a CniError of code 1 when the version is unknown, or cannot express the result. */
export function convertResult(from: VersionedResult, version: string): VersionedResult {
  const cniVersion = version || UNSTATED_VERSION;
  const family = resultFamily(cniVersion);
  if (family === undefined) {
    const message = `no converter for CNI result version ${from.result.cniVersion} to ${version}`;
    throw new CniError(INCOMPATIBLE_VERSION, message);
  }
  if (from.family === family) return { ...from, result: { ...from.result, cniVersion } } as VersionedResult;
  switch (family) {
    case "0.1": {
      const between = from.family === "0.3" ? from.result : listVersions(from.result as Result);
      return { family, result: { ...splitFamilies(between), cniVersion } };
    }
    case "0.3": {
      const result = from.family === "0.1" ? joinFamilies(from.result) : listVersions(from.result as Result);
      return { family, result: { ...result, cniVersion } };
    }
    case "1.0": {
      const between = from.family === "0.1" ? joinFamilies(from.result) : from.result as Result03;
      return { family, result: { ...dropVersions(between), cniVersion } };
    }
  }
}

/** 0.2.0 to 0.4.0: `ip4` and `ip6` become a list, and their routes become one. */
function joinFamilies({ ip4, ip6, dns, cniVersion }: Result01): Result03 {
  const ips: Result03["ips"] = [];
  if (ip4) ips.push({ version: "4", address: ip4.ip, gateway: ip4.gateway });
  if (ip6) ips.push({ version: "6", address: ip6.ip, gateway: ip6.gateway });
  return { cniVersion, ips, routes: [...ip4?.routes ?? [], ...ip6?.routes ?? []], dns };
}

/**
 * 0.4.0 to 0.2.0: keeps the first address of each family according to `version`, whatever the address itself is. Routes
 * keep destination and gateway; interfaces are lost.
 */
function splitFamilies({ ips = [], routes = [], dns, cniVersion }: Result03): Result01 {
  const first = (version: "4" | "6") => {
    const found = ips.find((ip) => ip.version === version);
    if (found === undefined) return undefined;
    const own = routes.filter((route) => isV6(route.dst) === (version === "6"));
    return { ip: found.address, gateway: found.gateway, routes: mapped(own, ({ dst, gw }) => ({ dst, gw })) };
  };
  const ip4 = first("4"), ip6 = first("6");
  if (!ip4 && !ip6) throw new CniError(INCOMPATIBLE_VERSION, "cannot convert: no valid IP addresses");
  return { cniVersion, ip4, ip6, dns };
}

/** 0.4.0 to 1.0.0: addresses lose their `version`. */
function dropVersions({ interfaces, ips, routes, dns, cniVersion }: Result03): Result {
  return { cniVersion, interfaces, ips: ips && mapped(ips, ({ version: _, ...ip }) => ip), routes, dns };
}

/** 1.0.0 to 0.4.0: addresses get a `version`; interfaces lose what 1.1.0 added. */
function listVersions({ interfaces, ips, routes, dns, cniVersion }: Result): Result03 {
  return {
    cniVersion,
    interfaces: interfaces && mapped(interfaces, ({ name, mac, sandbox }) => ({ name, mac, sandbox })),
    ips: ips && mapped(ips, (ip) => ({ version: isV6(ip.address) ? "6" : "4", ...ip })),
    routes,
    dns,
  };
}

/** What a plugin writes to stdout: the result in the version of the configuration. */
export function formatResult(result: Result, version: string): string {
  const newest = { family: "1.0", result: { ...result, cniVersion: CURRENT_VERSION } } as const;
  return printResult(convertResult(newest, version));
}

/** Keys are in the order of the reference library, and empty values are omitted where it omits them. */
export function printResult(from: VersionedResult): string {
  return JSON.stringify(printable(from), null, 4);
}

/** What `printResult` writes, as a document. */
export function resultDocument(from: VersionedResult): ParsedObject {
  return asRead(printable(from));
}

function printable({ family, result }: VersionedResult): Record<string, unknown> {
  const { cniVersion } = result;
  const dns = printableDns(result.dns);
  switch (family) {
    case "0.1":
      return {
        cniVersion,
        ip4: printableAddressing(result.ip4),
        ip6: printableAddressing(result.ip6),
        dns: dns ?? {},
      };
    case "0.3":
      return {
        cniVersion,
        interfaces: printables(result.interfaces, ({ name, mac, sandbox }) => ({
          name,
          mac: mac || undefined,
          sandbox: sandbox || undefined,
        })),
        ips: printables(result.ips, ({ version, interface: index, address, gateway }) => ({
          version,
          interface: index,
          address,
          gateway: gateway || undefined,
        })),
        routes: printables(result.routes, printableRoute),
        dns: dns ?? {},
      };
    case "1.0":
      return {
        cniVersion,
        dns: dns && { domain: dns.domain, nameservers: dns.nameservers, options: dns.options, search: dns.search },
        interfaces: printables(result.interfaces, ({ mac, mtu, name, pciID, sandbox, socketPath }) => ({
          mac: mac || undefined,
          mtu: mtu || undefined,
          name,
          pciID: pciID || undefined,
          sandbox: sandbox || undefined,
          socketPath: socketPath || undefined,
        })),
        ips: printables(result.ips, ({ address, gateway, interface: index }) => ({
          address,
          gateway: gateway || undefined,
          interface: index,
        })),
        routes: printables(result.routes, (route) => {
          const { dst, gw, mtu, advmss, priority, table, scope } = printableRoute(route);
          return { advmss, dst, gw, mtu, priority, scope, table };
        }),
      };
  }
}

function printableAddressing(side: Result01["ip4"]): unknown {
  if (side === undefined) return undefined;
  return { ip: side.ip, gateway: side.gateway || undefined, routes: printables(side.routes, printableRoute) };
}

/** Omits a metric of 0, but not table 0 and scope 0. */
function printableRoute({ dst, gw, mtu, advmss, priority, table, scope }: Route): Route {
  return {
    dst,
    gw: gw || undefined,
    mtu: mtu || undefined,
    advmss: advmss || undefined,
    priority: priority || undefined,
    table,
    scope,
  };
}

/** Undefined when it is empty. */
function printableDns(dns: Dns | undefined): Dns | undefined {
  if (dns === undefined) return undefined;
  const nameservers = filled(dns.nameservers), search = filled(dns.search), options = filled(dns.options);
  const domain = dns.domain || undefined;
  if (!nameservers && !domain && !search && !options) return undefined;
  return { nameservers, domain, search, options };
}

function printables<Item>(items: Item[] | undefined, print: (item: Item) => unknown): unknown[] | undefined {
  return items?.length ? mapped(items, print) : undefined;
}

function filled<Item>(items: Item[] | undefined): Item[] | undefined {
  return items?.length ? items : undefined;
}

/** Array.prototype.map, which JavaScriptCore would compile from source in every process (see decode.ts). */
function mapped<Item, Made>(items: Item[], make: (item: Item) => Made): Made[] {
  const made: Made[] = [];
  for (const item of items) made.push(make(item));
  return made;
}
