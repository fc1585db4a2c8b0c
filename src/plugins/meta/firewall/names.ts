/** Checks names that become part of rules: from the configuration, and the bridge's from prevResult. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { goQuote } from "../../../cni/quote.ts";
import { utf8 } from "../../../ffi/libc.ts";
import { FORWARD_CHAIN, STAGE_1, STAGE_2 } from "../../../resources/packets/firewall/spec.ts";

export const BACKENDS = ["iptables", "firewalld", "nftables"];
const POLICIES = ["", "open", "same-bridge", "isolated"];
const RESERVED = ["INPUT", "FORWARD", "OUTPUT", "ACCEPT", "DROP", "RETURN", "QUEUE", FORWARD_CHAIN, STAGE_1, STAGE_2];
// linux/netfilter/x_tables.h, XT_EXTENSION_MAXNAMELEN, and linux/if.h, IFNAMSIZ, without the terminating zero.
const CHAIN_LIMIT_BYTES = 28, LINK_LIMIT_BYTES = 15;

const CHAIN_NAME =
  `it is one word of at most ${CHAIN_LIMIT_BYTES} bytes, without quotes, and begins with neither "-" nor "!"`;

export function checkIngressPolicy(policy: string): void {
  if (POLICIES.includes(policy)) return;
  const known = POLICIES.filter((one) => one !== "").join(", ");
  throw refused(`ingressPolicy: unknown ingress policy: ${goQuote(policy)}`, `it is one of ${known}`);
}

export function checkChainName(key: string, name: string): void {
  if (name === "") return;
  const fits = utf8(name).length <= CHAIN_LIMIT_BYTES && isOneWord(name) && name[0] !== "-" && name[0] !== "!";
  if (!fits) throw refused(`${key}: ${goQuote(name)} cannot be the name of a chain`, CHAIN_NAME);
  if (RESERVED.includes(name)) throw refused(`${key}: ${goQuote(name)} has another meaning`);
}

export function checkZone(key: string, zone: string): void {
  if (zone.includes("\0")) throw refused(`${key}: ${goQuote(zone)} cannot be the name of a zone`);
}

export function checkBridgeName(policy: string, name: string | undefined): asserts name is string {
  if (name === undefined) {
    const chain = 'make sure to chain "firewall" plugin with "bridge"';
    throw refused(`interface needs to be set for ingress policy ${goQuote(policy)}, ${chain}`);
  }
  if (name === "") throw refused("got empty bridge name");
  const fits = utf8(name).length <= LINK_LIMIT_BYTES && isOneWord(name) && !/[/:]/.test(name) && !name.endsWith("+");
  if (!fits) throw refused(`prevResult: the name of the bridge, ${goQuote(name)}, cannot stand in a rule`);
}

/** Whether iptables-restore reads the name as one word. */
function isOneWord(name: string): boolean {
  return !/[\s\p{Cc}"'\\]/u.test(name);
}

function refused(message: string, details = ""): CniError {
  return new CniError(INVALID_CONFIG, message, details);
}
