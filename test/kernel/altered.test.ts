/**
 * CHECK of every kind of resource: whatever of its specification is altered by hand, one line says so, and repair mends it.
 * A comparison that a kind leaves out fails here.
 *
 * Longer than 300 lines: a table, one row for each thing that can be altered.
 */
import { existsSync } from "node:fs";
import { describe, expect, test } from "bun:test";
import { INTERNAL } from "../../src/cni/error.ts";
import { kindNames } from "../../src/resources/table.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { serving } from "../support/served-pool.ts";

interface Attachment {
  conf: Record<string, unknown> & { type: string };
  /** Before ADD, besides the links below. */
  prepare?: string;
  needs?: Feature;
  /** Started before it, with the bridge `ovs0`, and with a tunnel port for network 42 in VLAN 7. */
  openVswitch?: true;
  /**
   * By kind: a script, what CHECK must say, and whether repair cannot mend it. What only the answer to ADD says, such as a MAC
   * address that the kernel chose, repair does not look at.
   */
  altered: Record<string, [how: string, says: string | RegExp, stays?: "stays" | "is in the answer alone"][]>;
  /** CHECK says the same when the ledger is lost. */
  isKnownWithoutLedger?: true;
}

/** The container's link, as another plugin leaves it, and a link of the host to be a master. */
const MAC = "02:00:00:00:00:01", HOST_MAC = "02:00:00:00:00:02";
const links = `
ip link add host0 address ${HOST_MAC} type veth peer name net0 address ${MAC} netns c1
ip link set host0 up; ip -n c1 link set net0 up; ip -n c1 link set lo up
ip address add 10.2.0.1/24 dev host0; ip -n c1 address add 10.2.0.2/24 dev net0
ip -n c1 address add fd02::2/64 dev net0 nodad; ip -n c1 route add 192.0.2.0/24 via 10.2.0.1 dev net0
ip link add m0 type veth peer name m1; ip link set m0 up; ip link set m1 up
`;
const prevResult = {
  cniVersion: "1.1.0",
  interfaces: [{ name: "host0", mac: HOST_MAC }, { name: "net0", mac: MAC, sandbox: "/var/run/netns/c1" }],
  ips: [{ address: "10.2.0.2/24", gateway: "10.2.0.1", interface: 1 }, { address: "fd02::2/64", interface: 1 }],
};

const ipam = {
  type: "host-local",
  ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]],
  routes: [{ dst: "192.168.0.0/16" }, { dst: "192.169.0.0/16", gw: "10.20.0.1" }],
};
/** With one address, and what can become of it. */
const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const onV4: [how: string, says: string][] = [
  ["ip -n c1 link set net0 down", "link net0 in the container is down"],
  ["ip -n c1 address flush dev net0", "Failed to match addr 10.20.0.2/24 on interface net0"],
];
const PORT = "$(ls /sys/class/net/br0/brif | grep ^veth)";
const OWNER = "id: ctr-c1, if: net0, net: net";
const mapping = { hostPort: 8080, containerPort: 80, protocol: "tcp" };

/** Another element in the place of this one. */
const element = (table: string, map: string, key: string, rest: string) =>
  `nft delete element inet ${table} ${map} '{ ${key} }'; nft add element inet ${table} ${map} '{ ${key} ${rest} }'`;

const attachments: Record<string, Attachment> = {
  bridge: {
    conf: {
      type: "bridge",
      bridge: "br0",
      isDefaultGateway: true,
      ipMasq: true,
      ipMasqBackend: "nftables",
      promiscMode: true,
      mtu: 1400,
      ipam,
    },
    isKnownWithoutLedger: true,
    altered: {
      veth: [
        ["ip -n c1 link del net0", "Cannot find container link net0", "stays"],
        [
          "ip -n c1 link del net0; ip -n c1 link add net0 type bridge",
          "container interface net0 is a bridge, not a veth",
          "stays",
        ],
        [`ip link set ${PORT} nomaster`, "CNI veth created for bridge br0 was not found"],
        [
          `ip link add br9 type bridge; ip link set ${PORT} master br9`,
          "CNI veth created for bridge br0 was not found",
        ],
        [
          `P=${PORT}; ip link set $P down; ip link set $P name other`,
          "CNI veth created for bridge br0 was not found: veth",
          "stays",
        ],
        [
          `ip link set ${PORT} address 02:00:00:00:00:09`,
          /veth\w+ Mac \S+ doesn't match host Mac: 02:00:00:00:00:09/,
        ],
        ["ip -n c1 link set net0 address 02:00:00:00:00:09", "02:00:00:00:00:09", "is in the answer alone"],
      ],
      addressing: [
        ["ip -n c1 link set net0 down", "link net0 in the container is down"],
        ["ip -n c1 address del 10.20.0.2/24 dev net0", "Failed to match addr 10.20.0.2/24 on interface net0"],
        ["ip -n c1 address del fd20::2/64 dev net0", "Failed to match addr fd20::2/64 on interface net0"],
        [
          "ip -n c1 address add 10.20.0.2/25 dev net0; ip -n c1 address del 10.20.0.2/24 dev net0",
          "Failed to match addr 10.20.0.2/24 on interface net0",
        ],
        ["ip -n c1 route del 192.168.0.0/16", /Expected Route .*192\.168\.0\.0\/16.* not found/],
        ["ip -n c1 route del 192.169.0.0/16", /Expected Route .*192\.169\.0\.0\/16.* not found/],
        ["ip -n c1 route replace 192.169.0.0/16 via 10.20.0.9", /Expected Route .*192\.169\.0\.0\/16.* not found/],
        ["ip -n c1 route del default", /Expected Route .*0\.0\.0\.0\/0.* not found/],
      ],
      bridge: [
        ["ip link del br0", "bridge br0 is missing"],
        ["ip link del br0; ip link add br0 type ifb", "link br0 is a ifb, not a bridge", "stays"],
        ["ip link set br0 down", "bridge br0 is down"],
        ["ip link set br0 promisc off", "bridge br0 is not promiscuous"],
      ],
      "host-end-up": [[`ip link set ${PORT} down`, /link veth\w+ is down/]],
      "bridge-port": [[`bridge link set dev ${PORT} hairpin on`, /hairpin mode of bridge port veth\w+ is on/]],
      "bridge-gateway": [
        ["ip address del 10.20.0.1/24 dev br0", "gateway address 10.20.0.1/24 is missing on br0"],
        ["ip address del fd20::1/64 dev br0", "gateway address fd20::1/64 is missing on br0"],
        [
          "ip address add 10.20.0.1/25 dev br0; ip address del 10.20.0.1/24 dev br0",
          "gateway address 10.20.0.1/24 is missing on br0",
          "stays",
        ],
      ],
      forwarding: [
        ["sysctl -qw net.ipv4.ip_forward=0", "net.ipv4.ip_forward"],
        ["sysctl -qw net.ipv6.conf.all.forwarding=0", "net.ipv6.conf.all.forwarding"],
      ],
      masquerade: [["nft flush ruleset", "masquerade of 10.20.0.2"]],
      carrier: [["ip -n c1 link set net0 down", /link veth\w+ is (lower-?layer-?)?down/]],
      ipam: [["rm -r /var/lib/cni/networks/net", "ctr-c1", "stays"]],
    },
  },
  "an address of a pool": {
    conf: { type: "ptp", ipam: { type: "patchbay-cluster", pool: "lan" } },
    prepare: serving(),
    altered: {
      ipam: [
        ["rm -r /var/lib/patchbay/pools", "ctr-c1 in pool lan", "stays"],
        [
          "printf 'ctr-c1\\r\\neth0\\r\\nother' >/var/lib/patchbay/pools/lan/10.50.0.16",
          "ctr-c1 in pool lan",
          "stays",
        ],
      ],
    },
  },
  "bridge with a link that stays down": {
    conf: { type: "bridge", bridge: "br0", disableContainerInterface: true },
    altered: { "host-end-up": [[`ip link set ${PORT} down`, /link veth\w+ is down/]] },
  },
  "bridge with port options": {
    conf: { type: "bridge", bridge: "br0", hairpinMode: true, portIsolation: true, ipam: {} },
    needs: "isolated bridge ports",
    altered: {
      "bridge-port": [
        [`bridge link set dev ${PORT} hairpin off`, /hairpin mode of bridge port veth\w+ is off/],
        [`bridge link set dev ${PORT} isolated off`, /isolation of bridge port veth\w+ is off/],
      ],
      "port-isolation": [
        [
          "nft flush chain netdev patchbay_isolation on_br0",
          "chain on_br0 of table netdev patchbay_isolation is missing or altered",
        ],
        ["nft flush ruleset", "the container in map members of table netdev patchbay_isolation is missing"],
      ],
    },
  },
  "bridge with VLANs": {
    conf: {
      type: "bridge",
      bridge: "br0",
      vlan: 100,
      vlanTrunk: [{ minID: 200, maxID: 202 }, { id: 300 }],
      ipam: {},
    },
    needs: "bridge VLAN filtering",
    altered: {
      bridge: [["ip link set br0 type bridge vlan_filtering 0", "bridge br0 does not filter VLANs", "stays"]],
      "bridge-port": [
        [`bridge vlan del dev ${PORT} vid 100`, /bridge port veth\w+ lacks VLAN 100/],
        [`bridge vlan del dev ${PORT} vid 202`, /bridge port veth\w+ lacks VLAN 202/],
        [`bridge vlan del dev ${PORT} vid 300`, /bridge port veth\w+ lacks VLAN 300/],
        [`bridge vlan add dev ${PORT} vid 100`, /VLAN 100 of bridge port veth\w+ is not its PVID/],
      ],
    },
  },
  "a gateway in a VLAN": {
    conf: { type: "bridge", bridge: "br0", vlan: 100, isGateway: true, ipam },
    needs: "bridge VLAN filtering",
    altered: {
      "vlan-gateway": [
        ["ip link del br0.100", "VLAN gateway br0.100 is missing"],
        ["ip link set br0.100 down", "VLAN gateway br0.100 is down"],
      ],
      "bridge-gateway": [["ip address flush dev br0.100", "gateway address 10.20.0.1/24 is missing on br0.100"]],
    },
  },
  "a bridge's MAC check": {
    conf: { type: "bridge", bridge: "br0", macspoofchk: true, ipam: {} },
    needs: "nftables bridge family",
    altered: {
      "mac-spoof-check": [
        ["nft flush map bridge patchbay_macspoofchk guarded", /veth\w+ is not in map guarded/],
        ["nft flush set bridge patchbay_macspoofchk allowed", /veth\w+ with \S+ is not in set allowed/],
        [
          "nft flush chain bridge patchbay_macspoofchk prerouting",
          "chain prerouting of table bridge patchbay_macspoofchk has other rules than it should",
        ],
      ],
    },
  },
  ptp: {
    conf: { type: "ptp", ipMasq: true, ipMasqBackend: "nftables", ipam },
    isKnownWithoutLedger: true,
    altered: {
      "host-end-up": [["ip link set $(ls /sys/class/net | grep ^veth) down", /link veth\w+ is down/]],
      veth: [
        [
          "ip link set $(ls /sys/class/net | grep ^veth) master $(ip link add br9 type bridge; echo br9)",
          "CNI veth created for net0 was not found: veth",
        ],
      ],
      "gateway-side": [
        [
          "ip address del 10.20.0.1/32 dev $(ls /sys/class/net | grep ^veth)",
          "gateway address 10.20.0.1 is missing on veth",
        ],
        ["ip route del 10.20.0.2", "route to 10.20.0.2 by veth"],
        ["ip -6 route del fd20::2", "route to fd20::2 by veth"],
        ["ip route del 10.20.0.2; ip route add 10.20.0.2 dev host0", "route to 10.20.0.2 by veth"],
      ],
      addressing: [
        ["ip -n c1 route del 10.20.0.1/32", /Expected Route .*10\.20\.0\.1\/32.* not found/],
        ["ip -n c1 route del fd20::/64", /Expected Route .*fd20::\/64 via fd20::1.* not found/],
      ],
      forwarding: [["sysctl -qw net.ipv4.ip_forward=0", "net.ipv4.ip_forward"]],
      masquerade: [
        [
          "nft delete element inet patchbay_masquerade from_10.20.0.0/24 '{ 10.20.0.2 }'",
          "masquerade of 10.20.0.2 (map from_10.20.0.0/24 of table inet patchbay_masquerade) is missing",
        ],
        ["nft delete element inet patchbay_masquerade from_fd20--/64 '{ fd20::2 }'", "masquerade of fd20::2"],
        [
          element("patchbay_masquerade", "from_10.20.0.0/24", "10.20.0.2", 'comment "another" : "from_10.20.0.0/24"'),
          'belongs to "another"',
          "stays",
        ],
        [
          `nft add counter inet patchbay_masquerade other
           ${element("patchbay_masquerade", "from_10.20.0.0/24", "10.20.0.2", `comment "${OWNER}" : "other"`)}`,
          'is under "other"',
        ],
        ["nft flush chain inet patchbay_masquerade postrouting", "a rule for counter from_10.20.0.0/24"],
      ],
    },
  },
  "masquerade by iptables": {
    conf: { type: "ptp", ipMasq: true, ipMasqBackend: "iptables", ipam },
    altered: {
      masquerade: [
        ["iptables -t nat -F POSTROUTING", "the jump from POSTROUTING"],
        ["ip6tables -t nat -F POSTROUTING", "the jump from POSTROUTING"],
        [
          "C=$(iptables -t nat -S | sed -n 's/^-N \\(CNI-.*\\)/\\1/p'); iptables -t nat -D $C 1",
          "is missing or altered",
        ],
        [
          "C=$(iptables -t nat -S | sed -n 's/^-N \\(CNI-.*\\)/\\1/p'); iptables -t nat -D $C 2",
          "is missing or altered",
        ],
        [
          "C=$(ip6tables -t nat -S | sed -n 's/^-N \\(CNI-.*\\)/\\1/p'); ip6tables -t nat -F $C",
          "is missing or altered",
        ],
      ],
    },
  },
  macvlan: {
    conf: { type: "macvlan", master: "m0", mode: "bridge", ipam: {} },
    needs: "macvlan links",
    isKnownWithoutLedger: true,
    altered: {
      "container-link": [
        ["ip -n c1 link del net0", "Cannot find container link net0", "stays"],
        [
          "ip -n c1 link del net0; ip -n c1 link add net0 type bridge",
          "container interface net0 is a bridge, not a macvlan",
          "stays",
        ],
        [
          "ip -n c1 link set net0 type macvlan mode private",
          "container macvlan mode private does not match expected value: bridge",
        ],
        [
          "ip -n c1 link set net0 address 02:00:00:00:00:09",
          "doesn't match container Mac: 02:00:00:00:00:09",
          "is in the answer alone",
        ],
        ["ip link set m0 down; ip link set m0 name other", 'failed to lookup master "m0": Link not found', "stays"],
      ],
    },
  },
  vlan: {
    conf: { type: "vlan", master: "m0", vlanId: 7, mtu: 1400, ipam },
    needs: "VLAN links",
    altered: {
      "container-link": [
        ["ip -n c1 link set net0 mtu 1300", "configured MTU of net0 is 1400, current value is 1300"],
        [
          "ip -n c1 link del net0; ip link add link m0 name tag type vlan id 8; ip link set tag netns c1 name net0",
          "container vlan id 8 does not match expected value: 7",
          "stays",
        ],
        ["ip link set m0 down; ip link set m0 name other", 'failed to lookup master "m0": Link not found', "stays"],
      ],
    },
  },
  loopback: {
    conf: { type: "loopback" },
    altered: { "loopback-up": [["ip -n c1 link set lo down", "lo"]] },
  },
  tap: {
    conf: { type: "tap", multiQueue: true, owner: 5, group: 6, mtu: 1400, bridge: "inner", ipam: v4 },
    prepare: "ip -n c1 link add inner type bridge",
    isKnownWithoutLedger: true,
    altered: {
      tap: [
        ["ip -n c1 link del net0", "Cannot find container link net0", "stays"],
        [
          "ip -n c1 link del net0; ip -n c1 link add net0 type bridge",
          "container interface net0 is a bridge, not a tap",
          "stays",
        ],
        ["ip -n c1 link set net0 mtu 1300", "tap net0: mtu is 1300 instead of 1400"],
        [
          "ip -n c1 link set net0 address 02:00:00:00:00:09",
          "doesn't match container Mac: 02:00:00:00:00:09",
          "is in the answer alone",
        ],
        ["ip -n c1 link set net0 nomaster", "tap net0 is not on inner"],
        ...(["owner", "group", "multiQueue"] as const).map((key): [string, string, "stays"] => {
          const values = { owner: "user 5", group: "group 6", multiQueue: "multi_queue" };
          const { [key]: _, ...others } = values;
          return [
            `ip -n c1 link del net0; ip -n c1 tuntap add mode tap name net0 ${Object.values(others).join(" ")}`,
            `tap net0: ${key} is`,
            "stays",
          ];
        }),
      ],
      addressing: onV4,
    },
  },
  "host-device": {
    conf: { type: "host-device", device: "m1", ipam: v4 },
    altered: {
      "lent-link": [
        ["ip -n c1 link set net0 name other", "it is called other now"],
        ['ip -n c1 link set net0 alias "other"', 'alias of net0 is "other", not "m1"'],
        [
          "ip -n c1 link set net0 name other; ip -n c1 link add net0 type bridge",
          "container interface net0 is not the host's m1",
          "stays",
        ],
        [
          "ip -n c1 link set net0 address 02:00:00:00:00:09",
          "doesn't match container Mac: 02:00:00:00:00:09",
          "is in the answer alone",
        ],
      ],
      addressing: onV4,
    },
  },
  tuning: {
    conf: {
      type: "tuning",
      mac: "02:00:00:00:00:0A",
      mtu: 1400,
      promisc: true,
      allmulti: true,
      txQLen: 50,
      sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1", "net.ipv4.ip_local_port_range": "2000 3000" },
      prevResult,
    },
    altered: {
      "link-settings": [
        [
          "ip -n c1 link set net0 address 02:00:00:00:00:08",
          "configured Ethernet of net0 is 02:00:00:00:00:0A, current value is 02:00:00:00:00:08",
        ],
        ["ip -n c1 link set net0 mtu 1300", "configured MTU of net0 is 1400, current value is 1300"],
        ["ip -n c1 link set net0 promisc off", "configured promisc is true, current value is false"],
        ["ip -n c1 link set net0 allmulticast off", "configured all-multicast mode of net0 is true"],
        ["ip -n c1 link set net0 txqueuelen 60", "configured txQLen of net0 is 50, current value is 60"],
      ],
      sysctls: [
        ["ip netns exec c1 sysctl -qw net.ipv4.conf.net0.arp_filter=0", "arp_filter is 1, current value is 0"],
        ["ip netns exec c1 sysctl -qw net.ipv4.ip_local_port_range='2000 3001'", "ip_local_port_range is 2000 3000"],
        ["ip netns exec c1 sysctl -qw net.ipv4.ip_local_port_range='2001 3000'", "ip_local_port_range is 2000 3000"],
      ],
    },
  },
  sbr: {
    conf: { type: "sbr", prevResult },
    altered: {
      "source-rule": [
        ["ip -n c1 rule del from 10.2.0.2", "rule from 10.2.0.2"],
        ["ip -n c1 -6 rule del from fd02::2", "rule from fd02::2"],
        ["ip -n c1 rule del from 10.2.0.2; ip -n c1 rule add from 10.2.0.2 lookup 77", "rule from 10.2.0.2"],
        [
          "T=$(ip -n c1 rule list from 10.2.0.2 | sed 's/.*lookup //'); ip -n c1 rule del from 10.2.0.2; ip -n c1 rule add from 10.2.0.2 lookup $T priority 77",
          "rule from 10.2.0.2",
        ],
      ],
      "link-routes": [
        ["ip -n c1 route flush table 100", "by net0 is missing in table 100"],
        ["ip -n c1 -6 route del fd02::/64 table 101", "by net0 is missing in table 101"],
        ["ip -n c1 route del 192.0.2.0/24 table 100", /route 192\.0\.2\.0\/24.* by net0 is missing in table 100/],
        [
          "ip -n c1 route replace 192.0.2.0/24 via 10.2.0.9 dev net0 table 100",
          /route 192\.0\.2\.0\/24.* by net0 is missing/,
        ],
      ],
      "withdrawn-routes": [
        [
          "ip -n c1 route add 10.2.0.0/24 dev net0 proto kernel scope link src 10.2.0.2",
          /route 10\.2\.0\.0\/24.* by net0 is back in the main table/,
        ],
      ],
    },
  },
  vrf: {
    conf: { type: "vrf", vrfname: "blue", table: 55, prevResult },
    needs: "VRF links",
    altered: {
      vrf: [
        ["ip -n c1 link set blue down", "VRF blue is down"],
        ["ip -n c1 link del blue", "VRF blue is missing"],
        ["ip -n c1 link del blue; ip -n c1 link add blue type dummy", "Netlink blue is not a VRF", "stays"],
        [
          "ip -n c1 link del blue; ip -n c1 link add blue type vrf table 56",
          "VRF blue has routing table 56 instead of 55",
          "stays",
        ],
      ],
      "vrf-member": [
        ["ip -n c1 link set net0 nomaster", "failed to find net0 associated to vrf blue"],
        ["ip -n c1 route del 192.0.2.0/24 table 55", "is missing in table 55"],
      ],
    },
  },
  bandwidth: {
    conf: {
      type: "bandwidth",
      ingressRate: 8_000_000,
      ingressBurst: 1_600_000,
      egressRate: 4_000_000,
      egressBurst: 800_000,
      prevResult,
    },
    altered: {
      ifb: [
        ["ip link del $(ls /sys/class/net | grep ^bwp)", "get ifb device: Link not found"],
        ["ip link set $(ls /sys/class/net | grep ^bwp) down", /ifb bwp\w+ is down/],
        ["ip link set $(ls /sys/class/net | grep ^bwp) mtu 1300", /ifb bwp\w+ has MTU 1300, not 1500/],
        [
          "I=$(ls /sys/class/net | grep ^bwp); ip link del $I; ip link add $I address 02:00:00:00:00:09 type ifb",
          /ifb bwp\w+ has MAC 02:00:00:00:00:09/,
          "stays",
        ],
        [
          "I=$(ls /sys/class/net | grep ^bwp); ip link del $I; ip link add $I type bridge",
          /bwp\w+ is a bridge link/,
          "stays",
        ],
      ],
      redirect: [
        ["tc filter del dev host0 ingress", "host0 does not redirect to bwp"],
        ["tc qdisc del dev host0 ingress", "host0 does not redirect to bwp"],
        [
          "tc filter del dev host0 ingress; tc filter add dev host0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev m0",
          "host0 does not redirect to bwp",
        ],
      ],
      "traffic-limit": [
        ["tc qdisc del dev host0 root", "Failed to find qdisc: host0 has noqueue at its root"],
        [
          "tc qdisc del dev host0 root; tc qdisc add dev host0 root handle 1: pfifo",
          "Failed to find qdisc: host0 has pfifo where tbf is due",
          "stays",
        ],
        ["tc qdisc del dev host0 root; tc qdisc add dev host0 root handle 1: htb", "where tbf is due"],
        [
          "tc qdisc change dev host0 root handle 1: tbf rate 9mbit burst 200000 limit 225000",
          "Rate doesn't match: 1125000 on host0, not 1000000",
        ],
        [
          "tc qdisc change dev host0 root handle 1: tbf rate 8mbit burst 200000 limit 400000",
          "Limit doesn't match: 400000 on host0, not 225000",
        ],
        [
          "tc qdisc change dev host0 root handle 1: tbf rate 8mbit burst 300000 limit 225000",
          "Buffer doesn't match: 4687500 on host0, not 3125000",
        ],
        [
          "tc qdisc change dev $(ls /sys/class/net | grep ^bwp) root handle 1: tbf rate 9mbit burst 100000 limit 112500",
          "Rate doesn't match",
        ],
      ],
    },
  },
  "bandwidth for subnets": {
    conf: {
      type: "bandwidth",
      ingressRate: 8_000_000,
      ingressBurst: 1_600_000,
      unshapedSubnets: ["10.9.0.0/16", "fd09::/64"],
      prevResult,
    },
    altered: {
      "traffic-limit": [
        [
          "tc qdisc del dev host0 root; tc qdisc add dev host0 root handle 1: tbf rate 8mbit burst 200000 limit 225000",
          "where htb is due",
        ],
        [
          "tc qdisc del dev host0 root; tc qdisc add dev host0 root handle 1: htb default 1",
          "Default class does not match",
        ],
        [
          "tc class change dev host0 parent 1: classid 1:30 htb rate 9mbit burst 200000",
          "Rate doesn't match: 1125000 in class 1:30 of host0, not 1000000",
        ],
        ["tc class change dev host0 parent 1: classid 1:30 htb rate 8mbit burst 100000", "Buffer doesn't match"],
        ["tc class change dev host0 parent 1: classid 1:1 htb rate 9mbit", "Rate doesn't match"],
        ["tc filter del dev host0 protocol ip pref 16", "the filter for 10.9.0.0/16 is missing on host0"],
        [
          "tc filter add dev host0 protocol ip parent 1: pref 16 u32 match ip dst 10.8.0.0/16 flowid 1:1",
          "host0 has a filter that nobody asked for: priority 16, protocol 800, a080000/ffff0000 at 16, to 1:1",
        ],
      ],
    },
  },
  firewall: {
    conf: { type: "firewall", backend: "nftables", ingressPolicy: "same-bridge", prevResult },
    altered: {
      firewall: [
        [
          "nft delete element inet patchbay_firewall addresses4 '{ 10.2.0.2 }'",
          "10.2.0.2 in map addresses4 of table inet patchbay_firewall is missing",
        ],
        ["nft delete element inet patchbay_firewall addresses6 '{ fd02::2 }'", "fd02::2 in map addresses6"],
        [
          element("patchbay_firewall", "addresses4", "10.2.0.2", 'comment "another" : "on_host0"'),
          'belongs to "another"',
        ],
        [
          `nft add counter inet patchbay_firewall other
           ${element("patchbay_firewall", "addresses4", "10.2.0.2", `comment "${OWNER}" : "other"`)}`,
          'is under "other"',
        ],
        [
          "nft flush set inet patchbay_firewall guarded",
          "host0 in set guarded of table inet patchbay_firewall is missing",
        ],
        ["nft flush chain inet patchbay_firewall forward", "a rule in chain forward"],
      ],
    },
  },
  "an isolated firewall": {
    conf: { type: "firewall", backend: "nftables", ingressPolicy: "isolated", prevResult },
    altered: {
      firewall: [[
        'nft add element inet patchbay_firewall within \'{ "host0" . "host0" }\'',
        "host0 is in set within",
      ]],
    },
  },
  "a firewall by iptables": {
    conf: { type: "firewall", backend: "iptables", ingressPolicy: "same-bridge", prevResult },
    altered: {
      firewall: [
        ["iptables -D CNI-FORWARD -s 10.2.0.2/32 -j ACCEPT", /iptables rule -A CNI-FORWARD .*10\.2\.0\.2/],
        [
          "iptables -D CNI-FORWARD -d 10.2.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
          /-A CNI-FORWARD .*10\.2\.0\.2/,
        ],
        ["ip6tables -D CNI-FORWARD -s fd02::2/128 -j ACCEPT", /ip6tables rule -A CNI-FORWARD .*fd02::2/],
        ["iptables -F FORWARD", "iptables rule -A FORWARD"],
        [
          "iptables -D CNI-FORWARD -m comment --comment 'CNI firewall plugin admin overrides' -j CNI-ADMIN",
          "CNI-ADMIN",
        ],
        ["iptables -F CNI-ISOLATION-STAGE-1", "-A CNI-ISOLATION-STAGE-1"],
        ["iptables -F CNI-ISOLATION-STAGE-2", "-A CNI-ISOLATION-STAGE-2"],
      ],
    },
  },
  portmap: {
    conf: {
      type: "portmap",
      backend: "nftables",
      runtimeConfig: { portMappings: [mapping, { hostPort: 8081, containerPort: 81, protocol: "udp" }] },
      prevResult,
    },
    altered: {
      "port-mappings": [
        [
          "nft delete element inet patchbay_portmap ports_ipv4 '{ tcp . 8080 }'",
          "host port 8080/tcp (map ports_ipv4 of table inet patchbay_portmap) is missing",
        ],
        ["nft delete element inet patchbay_portmap ports_ipv4 '{ udp . 8081 }'", "host port 8081/udp"],
        [
          "nft delete element inet patchbay_portmap ports_ipv6 '{ tcp . 8080 }'",
          "host port 8080/tcp (map ports_ipv6",
        ],
        [
          element("patchbay_portmap", "ports_ipv4", "tcp . 8080", `comment "${OWNER}" : 10.2.0.2 . 81`),
          "leads elsewhere",
        ],
        [
          element("patchbay_portmap", "ports_ipv4", "tcp . 8080", 'comment "id: a, if: b, net: c" : 10.2.0.9 . 80'),
          "belongs to",
          "stays",
        ],
        [
          "nft delete element inet patchbay_portmap from_10.2.0.0/24 '{ 10.2.0.2 }'",
          "10.2.0.2 in map from_10.2.0.0/24 of table inet patchbay_portmap is missing",
        ],
        ["nft flush chain inet patchbay_portmap mapped", "table inet patchbay_portmap is missing or altered"],
        ["nft flush chain inet patchbay_portmap prerouting", "a rule in chain prerouting"],
        ["nft flush chain inet patchbay_portmap postrouting", "table inet patchbay_portmap is missing or altered"],
      ],
      "localhost-access": [
        ["sysctl -qw net.ipv4.conf.host0.route_localnet=0", "net.ipv4.conf.host0.route_localnet is not 1"],
        ["nft flush map ip patchbay_localhost users", "host0 is not used by the container in map users"],
        ["nft flush map ip patchbay_localhost links", "host0 is not in map links"],
        ["tc qdisc del dev host0 clsact", "host0 has no filter"],
        [
          "nft list table ip patchbay_localhost | sed -n 's/.*chain \\(.*\\) {/\\1/p' | while read C; do nft flush chain ip patchbay_localhost $C; done",
          "of table ip patchbay_localhost",
        ],
      ],
    },
  },
  "portmap by iptables": {
    conf: { type: "portmap", backend: "iptables", runtimeConfig: { portMappings: [mapping] }, prevResult },
    altered: {
      "port-mappings": [
        [
          "C=$(iptables -t nat -S | sed -n 's/^-N \\(CNI-DN-.*\\)/\\1/p'); iptables -t nat -F $C",
          "iptables rule -A CNI-DN-",
        ],
        ["iptables -t nat -F CNI-HOSTPORT-DNAT", "iptables rule -A CNI-HOSTPORT-DNAT"],
        ["iptables -t nat -F CNI-HOSTPORT-SETMARK", "iptables rule -A CNI-HOSTPORT-SETMARK"],
        ["iptables -t nat -F CNI-HOSTPORT-MASQ", "iptables rule -A CNI-HOSTPORT-MASQ"],
        ["iptables -t nat -F PREROUTING", "iptables rule -A PREROUTING"],
        ["iptables -t nat -F OUTPUT", "iptables rule -A OUTPUT"],
        ["iptables -t nat -F POSTROUTING", "iptables rule -A POSTROUTING"],
        [
          "C=$(ip6tables -t nat -S | sed -n 's/^-N \\(CNI-DN-.*\\)/\\1/p'); ip6tables -t nat -F $C",
          "ip6tables rule -A CNI-DN-",
        ],
      ],
    },
  },
};

/** The host's end, which is the bridge's only port but the tunnel's. */
const OVS_PORT = "$(ovs-vsctl list-ports ovs0 | grep ^veth)";
Object.assign(
  attachments,
  {
    ovs: {
      conf: { type: "ovs", bridge: "ovs0", vxlanID: 42, ipam, ...PATIENT },
      openVswitch: true,
      altered: {
        "ovs-port": [
          ["ovs-vsctl del-br ovs0", "failed to find bridge ovs0", "stays"],
          [`ovs-vsctl del-port ${OVS_PORT}`, /Open vSwitch has no port veth/],
          [`ovs-vsctl set port ${OVS_PORT} tag=8`, "vlan tag mismatch. ovs=8,netconf=7"],
          [`ovs-vsctl set port ${OVS_PORT} vlan_mode=trunk`, "vlan mode mismatch. expected=access,real=trunk"],
          [`ovs-vsctl set port ${OVS_PORT} trunks=9`, "trunk mismatch. ovs=[9],netconf=[]"],
          [`ovs-vsctl set port ${OVS_PORT} external_ids:patchbay-container=x`, "is another's", "stays"],
          [
            `P=${OVS_PORT}; ovs-vsctl --no-wait add-br other -- del-port $P -- add-port other $P -- set port $P tag=7 vlan_mode=access external_ids="{owner=patchbay,patchbay-network=net,patchbay-container=ctr-c1,contIface=net0}"`,
            "is not a port of bridge ovs0",
          ],
          ["ovs-vsctl set interface " + OVS_PORT + " type=internal", "is in error state"],
          ["ovs-vsctl del-port tunnel", 'no tunnel port for "vxlanID": 42', "stays"],
          ["ovs-vsctl set port tunnel tag=8", 'the tunnel port for "vxlanID": 42 is in VLAN 8', "stays"],
        ],
        "host-end-up": [
          ["ip link set $(ip -br link show type veth | sed -n 's/@.*//p' | grep ^veth | head -1) down", "is down"],
        ],
        "tx-checksums": [
          ["ip netns exec c1 ethtool -K net0 tx on", "does not compute the checksums that it sends"],
        ],
        "host-copy-dropped": [
          ["nft flush map inet patchbay_ovs links", "is not in map links of table inet patchbay_ovs"],
          ["nft flush chain inet patchbay_ovs prerouting", "of table inet patchbay_ovs"],
        ],
      },
    },
  } satisfies Record<string, Attachment>,
);

/** Kinds without an own line in CHECK, and where the others are altered. */
const elsewhere: Record<string, string> = {
  "aardvark-names": "test/frontends/netavark/gone.test.ts",
  announcement: "src/resources/address/announcement.ts",
  delegation: "test/kernel/flannel.test.ts",
  "firewall-state": "test/frontends/netavark/firewall/reload.test.ts",
  "firewalld-network": "test/frontends/netavark/firewall/firewalld.test.ts",
  "firewalld-ports": "test/frontends/netavark/firewall/firewalld.test.ts",
  "network-rules": "test/frontends/netavark/bridge.test.ts",
  "podman-bridge": "test/frontends/netavark/bridge.test.ts",
  "published-ports": "test/frontends/netavark/bridge.test.ts",
  "static-routes": "test/frontends/netavark/bridge.test.ts",
  "sysctl-file": "test/frontends/netavark/bridge.test.ts",
  "trusted-subnets": "test/frontends/netavark/firewall/firewalld.test.ts",
};

for (const [name, attachment] of Object.entries(attachments)) {
  const { conf, prepare = "", needs, openVswitch, altered, isKnownWithoutLedger } = attachment;
  describe.skipIf(lacks(needs))(name, () => {
    const rows = Object.entries(altered).flatMap(([kind, ways]) =>
      ways.map(([how, says, stays]) => ({ kind, how, says, stays }))
    );
    test.each(rows)("$kind: $how", async ({ how, says, stays }) => {
      await using machine = await openMachine();
      const container = await machine.container("c1");
      // Where the plugin makes the link, it needs the name.
      await machine.sh(`${conf.prevResult === undefined ? links.replaceAll("net0", "spare0") : links}\n${prepare}`);
      if (openVswitch) {
        const ovs = await startOpenVswitch(machine);
        await ovs.addBridge("ovs0");
        const tunnel = ["type=vxlan", "options:remote_ip=198.51.100.9", "options:key=42"];
        await ovs.vsctl("add-port", "ovs0", "tunnel", "tag=7", "--", "set", "interface", "tunnel", ...tunnel);
      }
      const net = network(machine, conf);
      await net.add(container, { ifName: "net0" });
      await net.check(container, { ifName: "net0" });
      await machine.sh(how);
      const expectSaid = async () => {
        const { code, json } = await net.call("CHECK", container, { ifName: "net0" });
        const said = `${json?.msg} ${json?.details ?? ""}`;
        expect({ code, error: json?.code, said }).toEqual({
          code: 1,
          error: INTERNAL,
          said: typeof says === "string" ? expect.stringContaining(says) : expect.stringMatching(says),
        });
      };
      await expectSaid();
      if (isKnownWithoutLedger) {
        await machine.sh("mv /run/patchbay /run/away");
        await expectSaid();
        await machine.sh("rm -rf /run/patchbay; mv /run/away /run/patchbay");
      }
      const repaired = await machine.run([PATCHBAY, "repair", "net", "ctr-c1"]);
      const checked = await net.call("CHECK", container, { ifName: "net0" });
      expect([repaired.code, checked.code]).toEqual([stays === "stays" ? 1 : 0, stays === undefined ? 0 : 1]);
      await net.del(container, { ifName: "net0" });
    });
  });
}

test("every kind is altered here, or elsewhere", () => {
  const here = new Set(Object.values(attachments).flatMap(({ altered }) => Object.keys(altered)));
  expect([...here, ...Object.keys(elsewhere)].sort()).toEqual([...kindNames].sort());
  for (const file of Object.values(elsewhere)) {
    expect([file, existsSync(`${import.meta.dir}/../../${file}`)]).toEqual([file, true]);
  }
});
