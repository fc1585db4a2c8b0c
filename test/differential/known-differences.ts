/**
 * Where we differ from the Go plugins on purpose. Each has its reason in docs/quirks.md under the same name.
 */
export interface KnownDifference {
  /** Lines that stand on one side only: `- ` is Go's, `+ ` is ours. */
  lines?: RegExp[];
  /** Turns Go's line into ours. */
  rewrites?: [RegExp, string][];
  /** Explains lines in every case; otherwise only in the cases that name it. */
  anywhere?: true;
}

export const knownDifferences: Record<string, KnownDifference> = {
  "empty-dns-left-out": { lines: [/^- answer\.dns = \{\}$/], anywhere: true },
  "errors-carry-cniversion": { lines: [/^\+ answer\.cniVersion = "/], anywhere: true },
  "links-have-macs-of-our-choice": {
    rewrites: [[/^(host link \S+ addr_assign_type)=1$/, "$1=3"]],
    anywhere: true,
  },
  "bridge-keeps-its-mac": {
    rewrites: [
      [/^(answer\.interfaces\.0\.mac = )"mac\(host\/veth>c1\/eth0\)"$/, '$1"mac(host/br0)"'],
      [/^(host link br0 address=)"(mac\(host\/veth>c1\/eth0\)|00:00:00:00:00:00)"$/, '$1"mac(host/br0)"'],
      [/^(host address br0) linklocal\((gone|host\/veth>c1\/eth0)\)/, "$1 linklocal(host/br0)"],
    ],
    anywhere: true,
  },
  "kernel-default-queue-length": { lines: [/^\+ c\d link eth\d txqlen=1000$/], anywhere: true },
  "no-duplicate-address-detection": {
    rewrites: [
      [
        /^(\S+ address \S+ fd\S+ \{"family":"inet6","scope":"global",)("valid.*?)(,"tentative":true)?\}$/,
        '$1"nodad":true,$2}',
      ],
    ],
    anywhere: true,
  },
  "addresses-kept-when-down": {
    rewrites: [[/^(c\d sysctl ipv6\/conf\/eth\d\/keep_addr_on_down)=0$/, "$1=1"]],
    anywhere: true,
  },
};
