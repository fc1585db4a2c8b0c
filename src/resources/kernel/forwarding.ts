/**
 * IP forwarding on the host, for one address family. A gateway needs it. DEL leaves it on, because other programs may need
 * it, too.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { readSysctl, writeSysctl } from "../../ffi/sysctl.ts";

interface ForwardingSpec {
  family: 4 | 6;
}

const keys = { 4: "net/ipv4/ip_forward", 6: "net/ipv6/conf/all/forwarding" };

export const forwardingKind: ResourceKind<ForwardingSpec> = {
  kind: "forwarding",
  unmade: undefined,
  apply({ family }) {
    if (readSysctl(keys[family]) !== "1") writeSysctl(keys[family], "1");
  },
  repair: (spec, host) => forwardingKind.apply(spec, host),
  undo: () => {},
  remove: () => {},
  verify: ({ family }) => readSysctl(keys[family]) === "1" ? [] : [`${keys[family].replaceAll("/", ".")} is not 1`],
  describe: ({ family }) => `IPv${family} forwarding`,
};

export const forwarding = resource(forwardingKind);
