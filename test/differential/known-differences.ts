/**
 * Where we differ from Debian's build of the Go plugins (1.1.1) on purpose. Each has its reason in docs/quirks/
 * under the same name, and must occur in every case it lists.
 *
 * Longer than 300 lines: a table, one row a difference.
 */
export interface KnownDifference {
  /** Lines that only one side has: `- ` is Go's, `+ ` is ours. */
  lines?: RegExp[];
  /** Turns Go's line into ours. */
  rewrites?: [RegExp, string][];
  /** Names of cases; `everywhere` explains lines wherever they appear. */
  cases: "everywhere" | string[];
}

const answers = /^[-+] (answer|exit|stdout)/;
const kernel = /^[-+] (host|c\d) /;

export const knownDifferences: Record<string, KnownDifference> = {
  "speaks-1.1.0": {
    lines: [/^\+ answer\.supportedVersions\.6 = "1\.1\.0"$/],
    rewrites: [
      [/^answer\.cniVersion = "1\.0\.0"$/, 'answer.cniVersion = "1.1.0"'],
      [/^(answer\.details = "config is .*)\]"$/, '$1 \\"1.1.0\\"]"'],
    ],
    cases: [
      "bandwidth, 0.2.0",
      "protocol, VERSION of bridge",
      "protocol, VERSION of loopback",
      "protocol, VERSION of host-local",
      "protocol, VERSION of static",
      "protocol, VERSION with nothing on stdin",
      "protocol, cniVersion unknown",
      "protocol, cniVersion is no version",
      "protocol, cniVersion shortened",
      "firewall, cniVersion 0.3.1",
    ],
  },
  "empty-dns-left-out": { lines: [/^- answer\.dns = \{\}$/], cases: "everywhere" },
  "errors-carry-cniversion": { lines: [/^\+ answer\.cniVersion = "/], cases: "everywhere" },
  "errors-have-details": {
    lines: [/^\+ answer\.details = "/],
    rewrites: [[/^(answer\.details = "interface name should be .*)"$/, '$1; CNI_IFNAME is \\"a234567890123456\\""']],
    cases: "everywhere",
  },
  "error-codes-of-the-specification": {
    rewrites: [1, 2, 4, 5, 7].map((code) => [/^answer\.code = 999$/, `answer.code = ${code}`]),
    cases: "everywhere",
  },
  "links-have-macs-of-our-choice": {
    rewrites: [[/^(host link \S+ addr_assign_type)=1$/, "$1=3"]],
    cases: "everywhere",
  },
  "bridge-keeps-its-mac": {
    rewrites: [
      [/^(answer\.interfaces\.0\.mac = )"mac\(host\/veth>\S+\)"$/, '$1"mac(host/br0)"'],
      [/^(host link br0 address=)"00:00:00:00:00:00"$/, '$1"mac(host/br0)"'],
      [/^(host address br0) linklocal\((gone|host\/veth>\S+)\)/, "$1 linklocal(host/br0)"],
    ],
    cases: "everywhere",
  },
  "bridge-says-who-made-it": {
    lines: [/^\+ host link \S+ ifalias="made by Patchbay for network \S+"$/],
    cases: "everywhere",
  },
  "kernel-default-queue-length": {
    lines: [/^\+ (c\d link \w+|host link (veth>)?br0\.100) txqlen=1000$/],
    cases: "everywhere",
  },
  "no-duplicate-address-detection": {
    rewrites: [[
      /^(\S+ address \S+ fd\S+ \{"family":"inet6","scope":"global",)("valid.*?)(,"tentative":true)?\}$/,
      '$1"nodad":true,$2}',
    ]],
    cases: "everywhere",
  },
  "addresses-kept-when-down": {
    rewrites: [[/^(c\d sysctl ipv6\/conf\/\w+\/keep_addr_on_down)=0$/, "$1=1"]],
    cases: "everywhere",
  },
  "addresses-announced": {
    rewrites: [[/^(c\d sysctl ipv6\/conf\/\w+\/ndisc_notify)=0$/, "$1=1"]],
    cases: "everywhere",
  },
  "failed-add-leaves-nothing": {
    lines: [kernel],
    cases: [
      "loopback with a foreign address on lo",
      "bridge, layer 2 only, 0.2.0",
      "bridge, a route with host bits",
      "bridge, the same route twice",
      "bridge, address conflict on the bridge",
      "bridge, overlapping IPv6 address on the bridge",
      "bridge, invalid MAC",
      "bridge, interface name taken in the container",
      "bridge, static without addresses",
      "bridge, an IPAM plugin that is not there",
      "bridge, an IPAM type with a slash",
      "bridge, an IPAM plugin that fails",
      "protocol, ipam.routes of text",
      "protocol, ipam.routes without a prefix",
      "protocol, namespace missing",
      "protocol, namespace is a plain file",
      "firewall, same-bridge without an interface",
      "firewall, an unknown policy",
    ],
  },
  "ifb-says-whose-it-is": { lines: [/^\+ host link bwp\w{12} ifalias="id: ctr-/], cases: "everywhere" },
  "lent-device-has-its-alias-back": { lines: [/^- host link dev5 ifalias="dev5"$/], cases: "everywhere" },
  "lent-device-always-comes-back": {
    lines: [answers, kernel],
    cases: [
      "host-device, DEL twice",
      "host-device, DEL without a namespace",
      "host-device, DEL after the link was renamed",
    ],
  },
  "default-route-given-once": {
    lines: [answers, kernel],
    cases: ["bridge, isDefaultGateway with a default route without gateway"],
  },
  "spoof-check-by-sets": {
    lines: [/^[-+] host nft \S+ bridge /],
    cases: ["bridge, macspoofchk", "bridge, macspoofchk, two containers"],
  },
  "macspoofchk-port-learns-nothing": {
    rewrites: [[/^(host link veth>\S+ linkinfo\.info_slave_data\.learning)=true$/, "$1=false"]],
    cases: ["bridge, macspoofchk", "bridge, macspoofchk, two containers"],
  },
  "layer-2-has-check": {
    lines: [/^- (exit 1|answer\.)/, /^\+ (exit 0|stdout "")$/],
    cases: [
      "bridge, layer 2 only, 0.4.0",
      "bridge, layer 2 only, 1.0.0",
      "bridge, layer 2 only with an empty ipam object",
      "bridge, ipMasq on layer 2 is ignored",
      "bridge, vlan on layer 2",
    ],
  },
  "default-vlan-removed": {
    lines: [/^- host vlan veth>\S+ 1-1 Egress Untagged$/],
    cases: [
      "bridge, vlan with gateway, two containers",
      "bridge, vlan on layer 2",
    ],
  },
  "vlan-gateway-made-first": {
    lines: [/^[-+] host link veth>\S+ linkinfo\.info_slave_data\.(no|id|designated_port)=/],
    cases: ["bridge, vlan with gateway, two containers"],
  },
  "vlan-gateway-ignores-advertisements": {
    rewrites: [[/^(host sysctl ipv6\/conf\/br0\.100\/accept_ra)=1$/, "$1=0"]],
    cases: ["bridge, vlan with gateway, two containers"],
  },
  "host-refuses-redirects": {
    rewrites: [[/^(host sysctl ipv4\/conf\/\S+\/accept_redirects)=1$/, "$1=0"]],
    cases: "everywhere",
  },
  "results-of-old-versions": {
    lines: [/^[-+] answer\.(interfaces|ips|ip4|ip6)\./],
    cases: [
      "loopback, 0.1.0",
      "loopback, 0.2.0",
      "loopback, 0.3.0",
      "loopback, 0.3.1",
      "loopback, 0.4.0",
    ],
  },
  "check-of-routes-without-gateway": {
    lines: [/^- (exit 1|answer\.)/, /^\+ (exit 0|stdout "")$/],
    cases: ["bridge, routes", "bridge, static addresses"],
  },
  "check-leaves-the-bridge-its-mac": {
    lines: [/^- (exit 1|answer\.)/, /^\+ (exit 0|stdout "")$/],
    cases: ["bridge, CHECK after the bridge changed its MAC"],
  },
  "dns-of-ipam-kept": {
    lines: [/^\+ answer\.dns\./],
    cases: ["bridge, dns of the IPAM plugin", "bridge, static addresses"],
  },
  "dns-of-ipam-on-a-master": { lines: [/^\+ answer\.dns\./], cases: ["macvlan, dns of the IPAM plugin"] },
  "del-reaches-the-link-from-the-host": {
    lines: [kernel],
    cases: ["bridge, DEL with the namespace gone", "ptp, DEL without a namespace"],
  },
  "sbr-empties-its-tables": { lines: [/^- c1 route .*"table":"10\d"/], cases: "everywhere" },
  "vrf-keeps-routes": {
    lines: [/^\+ c1 route .*"dev":"eth0","table":"(1|7|77)"/],
    cases: ["vrf, IPv4", "vrf, IPv6 and a table", "vrf, a VRF that is there"],
  },
  "sbr-leaves-what-it-does-not-move": {
    lines: [/^\+ c1 route .*"dev":"eth0","table":"main"/],
    cases: ["sbr, another interface's addresses"],
  },
  "check-looks-at-leases-only": {
    rewrites: [[
      /^answer\.msg = "ARGS: .*"$/,
      'answer.msg = "host-local: Failed to find address added by container ctr-c1"',
    ]],
    cases: ["host-local, requested address is no address"],
  },
  "del-does-not-judge": {
    lines: [/^- (exit 1|answer\.)/, /^\+ (exit 0|stdout "")$/],
    cases: [
      "portmap, port 0",
      "portmap, a negative container port",
      "portmap, two marks",
      "portmap, bit 32",
      "bandwidth, rate without burst",
      "bandwidth, burst without rate",
      "bandwidth, burst of 4 GB",
      "bandwidth, negative rate",
      "portmap, ports as text",
      "tuning, CNI_ARGS with an unknown key",
      "bridge, vlan too large",
      "bridge, vlan below zero",
      "bridge, an IPAM plugin that fails",
      "host-local, two IPv4 sets, 0.2.0",
      "host-local, requested address is no address",
      "firewall, an unknown policy",
      "macvlan, mtu above the master's",
      "macvlan, no default route",
      "macvlan, no such master",
      "macvlan, DEL after the master went",
      "ipvlan, DEL without a master to be found",
      "vlan, DEL after the master went",
    ],
  },
  "impossible-ranges-refused": {
    lines: [answers],
    cases: ["host-local, gateway outside the subnet", "host-local, rangeStart behind the default end"],
  },
  "del-needs-no-master": {
    lines: [kernel],
    cases: ["ipvlan, DEL without a master to be found"],
  },
  "check-tells-all-differences": {
    rewrites: [
      [
        /^answer\.msg = "Container Interface name in prevResult: eth0 not found"$/,
        'answer.msg = "Cannot find container link eth0: it is called x now; Cannot find container link eth0"',
      ],
      [
        /^(answer\.msg = "get ifb device: Link not found)"$/,
        '$1: bwp99bb1f1b7b98; link bwp99bb1f1b7b98 is missing; host1 does not redirect to bwp99bb1f1b7b98"',
      ],
      [/^(answer\.msg = ".*Expected Route )\{Dst.*\}/, "$1192.168.0.0/16 via 10.20.0.1"],
      [
        /^answer\.msg = "Interface name eth0 not found"$/,
        'answer.msg = "Cannot find container link eth0; bridge port veth>gone is not there; link veth>gone is not-present"',
      ],
      [
        /^(answer\.msg = "static: Failed to match addr 10\.40\.0\.5 on interface eth0)"$/,
        '$1; static: Failed to find addr fd40::5 on interface eth0"',
      ],
      [
        /^answer\.msg = "Container Interface name in prevResult: eth0 not found"$/,
        'answer.msg = "Cannot find container link eth0"',
      ],
    ],
    cases: [
      "host-device, CHECK after the link was renamed",
      "bandwidth, CHECK after the ifb went",
      "bridge, CHECK after a route went",
      "bridge, CHECK after the link went",
      "static, CHECK finds another gateway",
      "macvlan, CHECK after the link went",
    ],
  },
  "check-asks-for-prevresult-first": {
    rewrites: [[/^answer\.msg = ".*"$/, 'answer.msg = "Required prevResult missing"']],
    cases: [
      "bridge, hairpinMode and promiscMode",
      "bridge, invalid MAC",
      "static, CNI_ARGS address without a mask",
      "static, CNI_ARGS gateway that is none",
      "static, no ipam object",
    ],
  },
  "loopback-goes-down-again": {
    lines: [answers],
    cases: ["loopback with a foreign address on lo"],
  },
  "invalid-variables-before-missing-ones": {
    lines: [/^[-+] answer\.msg = "/],
    cases: ["protocol, bad interface name beside missing variables"],
  },
  "prevresult-of-another-version": {
    rewrites: [
      [/^answer\.code = 999$/, "answer.code = 6"],
      [/^(answer\.msg = "could not parse prevResult: result type supports )\[1\.0\.0\]/, "$1[1.0.0 1.1.0]"],
    ],
    cases: ["bridge, prevResult of another version's form"],
  },
  "texts-of-later-releases": {
    lines: [/^[-+] answer\.msg = "/],
    cases: [
      "host-device, no such device",
      "tuning, sysctl that is not net's",
      "tuning, the same sysctl twice",
      "bridge, a route with host bits",
      "bridge, the same route twice",
      "bridge, mtu larger than a veth can have",
      "bridge, bridge name too long",
      "bridge, hairpinMode and promiscMode",
      "bridge, interface name taken in the container",
      "bridge, ADD of the same attachment twice",
      "macvlan, no such master",
      "macvlan, interface name taken in the container",
    ],
  },
  "errors-name-key-and-value": {
    lines: [/^[-+] answer\.msg = "/],
    cases: [
      "tuning, multicast mac",
      "tuning, mtu that is too large",
      "tuning, sysctl that is none",
      "tuning, sysctl with a value that is none",
      "bandwidth, negative rate",
      "bridge, vlan too large",
      "bridge, vlan below zero",
      "host-local, a subnet that is none",
      "host-local, a gateway that is none",
      "static, an address without a mask by capability",
      "static, an address without a mask",
      "static, a gateway that is none",
      "protocol, stdin is no JSON",
      "protocol, stdin is an array",
      "protocol, two documents on stdin",
      "protocol, name is a number",
      "protocol, cniVersion is a number",
      "protocol, mtu as text",
      "protocol, mtu with a fraction",
      "protocol, vlan as text",
      "protocol, isGateway as text",
      "protocol, ipMasq as number",
      "protocol, bridge as number",
      "protocol, ipam as text",
      "protocol, ipam.type as number",
      "protocol, dns as text",
      "protocol, dns.nameservers as text",
      "protocol, capabilities of text",
      "protocol, runtimeConfig.mac as number",
      "protocol, ipam.routes of text",
      "protocol, ipam.routes without a prefix",
      "protocol, prevResult as text",
      "firewall, an unknown policy",
      "portmap, ports as text",
    ],
  },
  "ingress-policies-of-later-releases": {
    rewrites: [[
      /^(host ip6?tables filter .*\(ingressPolicy: same-bridge)(\)" -j (RETURN|DROP|CNI-ISOLATION-STAGE-1))$/,
      "$1|isolated$2",
    ]],
    cases: ["firewall, same-bridge"],
  },
  "ingress-policy-against-every-backend": {
    lines: [/^\+ host nft \w+ inet +patchbay_firewall /],
    cases: ["firewall, same-bridge"],
  },
  "portmap-localhost-guarded": {
    lines: [
      /^\+ host nft \w+ ip +patchbay_localhost /,
      /^\+ host tc br0 (qdisc clsact |ingress filter protocol all pref 1 bpf )/,
    ],
    rewrites: [[/^(host sysctl ipv4\/conf\/br0\/route_localnet)=1$/, "$1=0"]],
    cases: "everywhere",
  },
  "portmap-loopback-spared": {
    lines: [
      /^\+ host iptables nat .*-d 127\.0\.0\.(1\/32|0\/8) .*-j (\S*MARK\S*|DNAT --to-destination \S+|RETURN)$/,
      /^\+ host ip6tables nat .*-d ::1\/128 .*-j RETURN$/,
    ],
    cases: "everywhere",
  },
  "portmap-check-of-both-families": {
    lines: [
      /^- (exit 1|answer\.code = 999|answer\.msg = "could not check ipv[46] dnat: .*)$/,
      /^\+ (exit 0|stdout "")$/,
    ],
    cases: [
      "portmap, one port",
      "portmap, three protocols",
      "portmap, twenty ports",
      "portmap, addresses of the host",
      "portmap, keys as containerd writes them",
      "portmap, version 4 alone",
      "portmap, version 6 alone",
      "portmap, the container's address among others",
      "portmap, without snat",
      "portmap, masqAll",
      "portmap, another bit",
      "portmap, bit 0",
      "portmap, a chain of others",
      "portmap, conditions",
    ],
  },
  "portmap-one-family": {
    lines: [/^- host ip6?tables nat #0 :\w+ ACCEPT $/],
    cases: [
      "portmap, version 4 alone",
      "portmap, version 6 alone",
      "portmap, no addresses",
      "portmap, no prevResult",
      "portmap, CHECK after the chains went",
    ],
  },
  "portmap-check-names-the-rule": {
    lines: [
      /^- answer\.msg = "could not check ipv4 dnat: (rule|chain) .* not found in (iptables )?table nat"$/,
      /^\+ answer\.msg = "(iptables rule -A CNI-HOSTPORT-DNAT|chain CNI-DN-) ?.* not found in (iptables )?table nat"$/,
    ],
    cases: ["portmap, CHECK after a rule went", "portmap, CHECK after the chains went"],
  },
  "masq-all-of-later-releases": {
    lines: [/^[-+] host ip6?tables nat #\d -A CNI-DN-/],
    cases: ["portmap, masqAll"],
  },
  "firewall-rules-always-removed": {
    lines: [/^- host ip6?tables filter #\d -A CNI-FORWARD -[sd] /],
    cases: ["firewall, ADD twice, DEL without prevResult"],
  },
  "firewall-check-names-the-rule": {
    rewrites: [
      [/^(answer\.msg = "expected )rule \[(.*)\] not found"$/, '$1iptables rule -A CNI-FORWARD $2 not found"'],
      [
        /^(answer\.msg = "expected )FORWARD rule \[(.*) --comment (.*) -j (\S+)\] not found"$/,
        '$1iptables rule -A FORWARD $2 --comment \\"$3\\" -j $4 not found"',
      ],
    ],
    cases: ["firewall, CHECK after a rule went", "firewall, CHECK after the jump went"],
  },
  "sysctls-put-back": {
    rewrites: [[/^(c1 sysctl ipv4\/conf\/eth0\/arp_\w+)=1$/, "$1=0"]],
    cases: [
      "tuning, sysctl",
      "tuning, sysctl with slashes",
      "tuning, sysctl with IFNAME",
      "tuning, sysctl from args too",
    ],
  },
  "check-judges-as-add": {
    lines: [
      /^- answer\.msg = "Error: Tuning configured Ethernet of eth0 is hello, /,
      /^\+ answer\.msg = "invalid args hello /,
    ],
    cases: ["tuning, invalid mac"],
  },
  "check-knows-ifname": {
    lines: [/^- (exit 1|answer\.code = 999)$/, /^- answer\.msg = "open .*IFNAME.*/, /^\+ (exit 0|stdout "")$/],
    cases: ["tuning, sysctl with IFNAME"],
  },
  "redirect-comes-second": {
    rewrites: [[/^(host tc host1 ingress filter .*) pref 1 u32 /, "$1 pref 2 u32 "]],
    cases: "everywhere",
  },
  "redirect-given-once": {
    lines: [/^- host tc host1 ingress (\taction order 2: mirred .* pass|\tindex 2)?$/],
    cases: "everywhere",
  },
  "limits-go-with-del": {
    lines: [/^- host tc host1 /, /^[-+] host link host1 qdisc="/],
    cases: ["bandwidth, the link stays after DEL"],
  },
  "bursts-saturate": {
    lines: [/^[-+] host tc bwp\w+ qdisc tbf 1: root rate 1Mbit burst /],
    cases: ["bandwidth, kubelet's burst at a low rate"],
  },
  "check-looks-at-the-root": {
    lines: [
      /^- (exit 0|stdout "")$/,
      /^\+ (exit 1|answer\.code = 999)$/,
      /^\+ answer\.msg = "Failed to find qdisc: /,
    ],
    cases: ["bandwidth, CHECK after the limit went"],
  },
  "no-limits-no-crash": {
    lines: [/^- exit 2$/, /^\+ exit 0$/],
    cases: ["bandwidth, nothing to do"],
  },
};
