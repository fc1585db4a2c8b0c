/** resolv.conf(5) as a result's DNS settings, read the way the reference host-local plugin reads it. */
import type { Dns } from "../../cni/result.ts";

export function parseResolvConf(text: string): Dns {
  const dns: Dns = {};
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (/^[#;]/.test(line) || values.length === 0) continue;
    if (keyword === "nameserver") (dns.nameservers ??= []).push(values[0]!);
    if (keyword === "domain") dns.domain = values[0]!;
    if (keyword === "search") (dns.search ??= []).push(...values);
    if (keyword === "options") (dns.options ??= []).push(...values);
  }
  return dns;
}
