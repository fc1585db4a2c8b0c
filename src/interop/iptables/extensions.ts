/** Which matches and targets of iptables the kernel has: rules in nf_tables need them besides nf_tables itself. */
import { type Extension, hasExtension } from "../../ffi/netlink/nftables/extension.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { ruleExpressions } from "./nft-rule.ts";
import type { IptablesRule } from "./rule.ts";

/** What the rules need and the kernel lacks, in the words of iptables-extensions(8). */
export function missingExtensions(socket: NetlinkSocket, rules: readonly IptablesRule[]): string[] {
  const missing: string[] = [];
  for (const extension of extensionsOf(rules)) {
    const has = hasExtension(socket, extension);
    if (has === undefined) return ["nft_compat"];
    if (!has) missing.push(`the ${extension.kind} ${extension.name} of iptables`);
  }
  return missing;
}

function extensionsOf(rules: readonly IptablesRule[]): Iterable<Extension> {
  const found = new Map<string, Extension>();
  for (const rule of rules) {
    for (const { name: kind, values } of ruleExpressions(rule, 4)) {
      if (kind !== "match" && kind !== "target") continue;
      const { name, revision } = values as Omit<Extension, "kind">;
      found.set(`${kind} ${name}`, { kind, name, revision });
    }
  }
  return found.values();
}
