/** The limits of a configuration. Pure. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { goQuote } from "../../../cni/quote.ts";
import { parsePrefix } from "../../../net/address.ts";
import type { Limit } from "../../../resources/traffic/traffic-limit/token-bucket.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";

export interface Limits {
  /** Towards the container. */
  ingress?: Limit;
  egress?: Limit;
  /** The remote subnets that are limited, or that are exempt. */
  subnets?: { cidrs: string[]; limited: boolean };
}

const MAX_U32 = 0xffffffff;

/** From the configuration, or else from the capability. Throws a CniError of code 7. */
export function limitsOf(conf: BandwidthConf): Limits {
  const written = hasLimits(conf) ? conf : conf.runtimeConfig?.bandwidth ?? {};
  const { unshapedSubnets = [], shapedSubnets = [] } = written;
  const limits: Limits = {
    ingress: limitOf(written, "ingressRate", "ingressBurst"),
    egress: limitOf(written, "egressRate", "egressBurst"),
  };
  if (unshapedSubnets.length > 0 && shapedSubnets.length > 0) {
    throw new CniError(
      INVALID_CONFIG,
      "unshapedSubnets and shapedSubnets cannot be both specified, one of them should be discarded",
    );
  }
  const cidrs = shapedSubnets.length > 0 ? shapedSubnets : unshapedSubnets;
  for (const cidr of cidrs) {
    if (parsePrefix(cidr) !== undefined) continue;
    throw new CniError(INVALID_CONFIG, `bad subnet ${goQuote(cidr)} provided, details invalid CIDR address: ${cidr}`);
  }
  if (cidrs.length > 0) limits.subnets = { cidrs, limited: cidrs === shapedSubnets };
  return limits;
}

type Written = Pick<
  BandwidthConf,
  "ingressRate" | "ingressBurst" | "egressRate" | "egressBurst" | "unshapedSubnets" | "shapedSubnets"
>;

export function hasLimits(conf: Written): boolean {
  const { ingressRate, ingressBurst, egressRate, egressBurst, unshapedSubnets, shapedSubnets } = conf;
  return (ingressRate ?? ingressBurst ?? egressRate ?? egressBurst ?? unshapedSubnets ?? shapedSubnets) !== undefined;
}

/** Converts bits to bytes and rounds down, like the reference plugin. */
function limitOf(
  written: Written,
  rateKey: "ingressRate" | "egressRate",
  burstKey: "ingressBurst" | "egressBurst",
): Limit | undefined {
  const rateBits = written[rateKey] ?? 0, burstBits = written[burstKey] ?? 0;
  if (rateBits === 0 && burstBits === 0) return undefined;
  const rate = Math.floor(rateBits / 8), burst = Math.floor(burstBits / 8);
  const reason = burstBits === 0
    ? "if rate is set, burst must also be set"
    : rateBits === 0
    ? "if burst is set, rate must also be set"
    : burst >= MAX_U32
    ? "burst cannot be more than 4GB"
    : rate === 0 || burst === 0
    ? "rate and burst must be at least 8 bits"
    : undefined;
  if (reason === undefined) return { rate, burst };
  throw new CniError(INVALID_CONFIG, reason, `"${rateKey}" is ${rateBits}, "${burstKey}" is ${burstBits}`);
}
