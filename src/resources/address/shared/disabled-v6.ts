/** Links of the host on which IPv6 is switched off. The kernel says no more of them than "permission denied". */
import { readSysctl, sysctlName } from "../../../ffi/sysctl.ts";

/** Why the link takes no IPv6 address; undefined when it does. A link that is not there yet begins as `default`. */
export function whyNoV6(link: string): string | undefined {
  const name = readSysctl(keyOf(link)) === undefined ? "default" : link, value = readSysctl(keyOf(name));
  if (value === "0") return undefined;
  if (value === undefined) return "this kernel runs without IPv6 (ipv6.disable=1)";
  // An administrator who switched it off for all has to switch it on for all: the uplink has lost its addresses, too. A
  // link that ADD has made, and takes away again, has what `default` says; one that was there keeps its own.
  const key = keyOf(["all", "default"].find((each) => readSysctl(keyOf(each)) === "1") ?? name);
  const own = key === keyOf("default") && name === link
    ? `; where ${link} was there before, ${sysctlName(keyOf(link))}, too`
    : "";
  return `IPv6 is disabled on ${link}: ${sysctlName(key)} is 1${own}`;
}

function keyOf(link: string): string {
  return `net/ipv6/conf/${link}/disable_ipv6`;
}
