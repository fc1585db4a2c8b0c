/** static: addresses from the configuration or the call, with no stored state (reference plugin static). */
import { parseCniArgs } from "../../../cni/args.ts";
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { IpConfig, Result } from "../../../cni/result.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { canonicalAddress, canonicalPrefix, contains, parseAddress, parsePrefix } from "../../../net/address.ts";
import { withAddressTexts } from "./go-address.ts";
import type { StaticConf } from "./static.schema.ts";
import { validateStaticConf } from "./static.validate.gen.ts";

type At = Attachment<StaticConf>;

export default definePlugin<StaticConf>({
  name: "static",
  keepsNothing: true,
  validate: (document) => validateStaticConf(withAddressTexts(document)),
  judge: (conf, call) => call === undefined && requireDistinct(conf),
  fixedAddresses: ({ ipam }) => (ipam?.addresses ?? []).map(({ address }) => address),
  caveats: ({ ipam }) =>
    (ipam?.addresses ?? []).flatMap(({ address, gateway }, index) =>
      gateway === undefined || contains(parsePrefix(address)!, parseAddress(gateway)!)
        ? []
        : [{ key: `ipam.addresses[${index}].gateway`, text: `${gateway} is not in the subnet of ${address}` }]
    ),
  add,
  check,
});

/** ADD leaves it to the plugin that sets the addresses. A link has an address of IPv6 once, whatever its prefix length. */
function requireDistinct({ ipam }: StaticConf): void {
  const found = new Set<string>();
  for (const [index, { address }] of (ipam?.addresses ?? []).entries()) {
    const text = canonicalPrefix(address) ?? address, key = text.includes(":") ? text.split("/")[0]! : text;
    if (found.has(key)) {
      throw new CniError(INVALID_CONFIG, `"ipam.addresses[${index}].address": ${address} is there twice`);
    }
    found.add(key);
  }
}

function add(at: At): Result {
  const { cniVersion, ipam } = at.conf;
  return { cniVersion, ips: addressesOf(at), routes: ipam?.routes, dns: ipam?.dns };
}

/** Every address must be in prevResult with its configured gateway. */
function check(at: At): string[] {
  return addressesOf(at).flatMap(({ address, gateway }) => {
    const [ip] = address.split("/");
    const found = at.prevResult?.ips?.find((each) => each.address.split("/")[0] === ip);
    if (found === undefined) return [`static: Failed to find addr ${ip} on interface ${at.ifName}`];
    if (gateway === undefined || gateway === found.gateway) return [];
    return [`static: Failed to match addr ${ip} on interface ${at.ifName}`];
  });
}

/** CNI_ARGS adds to the configured addresses. `args` replaces both, and the capability replaces everything. */
function addressesOf({ conf, cniArgs }: At): IpConfig[] {
  if (conf.ipam === undefined) throw new CniError(INVALID_CONFIG, "IPAM config missing 'ipam' key");
  const configured = (conf.ipam.addresses ?? []).map(({ address, gateway }) => ({ address, gateway }));
  const fromArgs = addressesOfArgs(cniArgs);
  const replacing = [conf.runtimeConfig?.ips, conf.args?.cni?.ips].find((ips) => ips?.length);
  const ips: IpConfig[] = replacing?.map((address) => ({ address })) ?? [...configured, ...fromArgs];
  const ofFamily = (length: number) => ips.filter(({ address }) => parsePrefix(address)!.bytes.length === length);
  if ((ofFamily(4).length > 1 || ofFamily(16).length > 1) && /^0\.[12]\./.test(conf.cniVersion)) {
    throw new CniError(
      INVALID_CONFIG,
      `CNI version ${conf.cniVersion} does not support more than 1 address per family`,
    );
  }
  return ips;
}

/** `IP=10.1.0.5/24,fd01::5/64;GATEWAY=10.1.0.1`: a gateway belongs to the addresses whose network contains it. */
function addressesOfArgs(cniArgs: string): IpConfig[] {
  const { IP, GATEWAY } = parseCniArgs(cniArgs, ["IP", "GATEWAY"]);
  const items = (list: string | undefined) => (list ? list.split(",").map((item) => item.trim()) : []);
  const ips: IpConfig[] = items(IP).map((text) => {
    const address = canonicalPrefix(text);
    if (address !== undefined) return { address };
    throw new CniError(INVALID_CONFIG, `the 'ip' field is expected to be in CIDR notation, got: '${text}'`);
  });
  for (const text of items(GATEWAY)) {
    const gateway = parseAddress(text);
    if (gateway === undefined) throw new CniError(INVALID_CONFIG, `invalid gateway address: ${text}`);
    for (const ip of ips) if (contains(parsePrefix(ip.address)!, gateway)) ip.gateway = canonicalAddress(text);
  }
  return ips;
}
