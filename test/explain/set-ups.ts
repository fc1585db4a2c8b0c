/**
 * Ways in which others, or an accident, break containers' traffic: what is asked, what stops it, what mends it.
 *
 * Longer than 300 lines: it is one table.
 */

import { nft } from "./town.ts";

export interface SetUp {
  what: string;
  /** A script on the host. `ip -n web` and `ip netns exec web` reach into a container. */
  break: string;
  /** What is asked of `explain`, and tried for real. */
  ask: readonly string[];
  code: string;
  verdict?: "stops" | "unknown";
  owner?: string;
  /** Only some connections fail. */
  sometimes?: true;
  /** `printed`: the lines that explain prints, run as printed; otherwise a script. `none`: it prints no line to run. */
  mend: "printed" | "none" | { script: string };
  /** What `reset` and `repair` do not put back. */
  undo?: string;
}

const OUT = ["web", "198.18.0.2", "tcp/7000"] as const;
const OUT6 = ["web", "fd99::2", "tcp/7000"] as const;
const BESIDE = ["web", "jug", "tcp/80"] as const;
const PORT = ["outside", "host:8080", "tcp"] as const;
const FAR = ["web", "far", "tcp/80"] as const;

const other = (hook: string, rules: string, policy = "accept", family = "inet", priority = "5") =>
  nft(
    `table ${family} other { chain c { type filter hook ${hook} priority ${priority}; policy ${policy}; ${rules} } }`,
  );

const PORT_OF_WEB = "\"$(ip -o link show master shop0 | sed -n 's/^[0-9]*: \\([^@]*\\)@.*/\\1/p' | head -1)\"";

export const setUps: SetUp[] = [
  {
    what: "iptables' FORWARD has the policy DROP",
    break: "iptables -P FORWARD DROP",
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "Docker's policy, with its rules for itself",
    break:
      "iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; iptables -A FORWARD -o docker0 -j ACCEPT; iptables -P FORWARD DROP",
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "the older tables' FORWARD, which nft does not list",
    break: "iptables-legacy -P FORWARD DROP",
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
    undo: "iptables-legacy -P FORWARD ACCEPT; iptables-legacy -F FORWARD",
  },
  {
    what: "a stranger's chain with the policy drop",
    break: other("forward", "", "drop"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "a stranger's rule for the subnet",
    break: other("forward", "ip saddr 10.40.0.0/24 drop;"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "a stranger's reject",
    break: other("forward", "iifname shop0 reject with icmp type admin-prohibited;"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "in raw, before every filter chain",
    break: other("prerouting", "ip saddr 10.40.0.2 drop;", "accept", "ip", "raw"),
    ask: OUT,
    code: "prerouting-drop",
    mend: "printed",
  },
  {
    what: "in iptables' raw",
    break: "iptables -t raw -A PREROUTING -i shop0 -j DROP",
    ask: OUT,
    code: "prerouting-drop",
    mend: "printed",
  },
  {
    what: "only answers are dropped",
    break: other("forward", "iifname eth1 oifname shop0 drop;"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "connections that answer are taken for new",
    break: other("forward", "ct state established drop;"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "what leaves by the uplink is dropped behind the routes",
    break: other("postrouting", "oifname eth1 drop;"),
    ask: OUT,
    code: "postrouting-drop",
    mend: "printed",
  },
  {
    what: "one port is forbidden",
    break: other("forward", "tcp dport 7000 drop;"),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "UDP alone",
    break: other("forward", "meta l4proto udp drop;"),
    ask: ["web", "198.18.0.2", "udp/7000"],
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "a set of addresses",
    break: nft(
      "table inet other { set bad { type ipv4_addr; elements = { 10.40.0.2 } }; chain c { type filter hook forward priority 0; ip saddr @bad drop; } }",
    ),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "a map of verdicts",
    break: nft(
      'table inet other { chain no { drop; }; chain c { type filter hook forward priority 0; iifname vmap { "shop0" : jump no }; } }',
    ),
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "forwarding is off",
    break: "sysctl -qw net.ipv4.ip_forward=0",
    ask: OUT,
    code: "forwarding-off",
    mend: "printed",
  },
  {
    what: "forwarding is off for one link",
    break: "sysctl -qw net.ipv4.conf.shop0.forwarding=0",
    ask: OUT,
    code: "link-forwarding-off",
    mend: "printed",
  },
  {
    what: "names are not asked: INPUT drops port 53",
    break: "iptables -A INPUT -i shop0 -p udp --dport 53 -j DROP",
    ask: ["web", "10.40.0.1", "udp/53"],
    code: "input-drop",
    mend: "printed",
  },
  {
    what: "INPUT has the policy DROP",
    break: "iptables -P INPUT DROP",
    ask: ["web", "10.40.0.1", "tcp/53"],
    code: "input-drop",
    mend: "printed",
  },
  {
    what: "nobody listens at the host's port",
    break: "true",
    ask: ["web", "10.40.0.1", "tcp/5353"],
    code: "nobody-listens",
    mend: { script: "" },
  },
  {
    what: "nobody listens in the container",
    break: "true",
    ask: ["web", "jug", "tcp/81"],
    code: "nobody-listens",
    mend: { script: "" },
  },
  {
    what: "the published port leads to nobody",
    break: "true",
    ask: ["outside", "host:8081", "tcp"],
    code: "nobody-listens",
    mend: { script: "" },
  },
  {
    what: "the bridge is down",
    break: "ip link set shop0 down",
    ask: OUT,
    code: "link-down",
    mend: { script: "ip link set shop0 up" },
  },
  {
    what: "the container's link is down",
    break: "ip -n web link set eth0 down",
    ask: OUT,
    code: "link-down",
    mend: "printed",
  },
  {
    what: "the container has lost its address",
    break: "ip -n web address flush dev eth0",
    ask: OUT,
    code: "no-address",
    mend: "printed",
  },
  {
    what: "the container has no default route",
    break: "ip -n web route delete default",
    ask: OUT,
    code: "no-route",
    mend: "printed",
  },
  {
    what: "the bridge has lost its address",
    break: "ip address delete 10.40.0.1/24 dev shop0",
    ask: OUT,
    code: "gateway-missing",
    mend: "printed",
  },
  {
    what: "the port is off the bridge",
    break: `ip link set ${PORT_OF_WEB} nomaster`,
    ask: OUT,
    code: "not-a-port",
    mend: "printed",
  },
  {
    what: "the uplink is down",
    break: "ip link set eth1 down",
    ask: OUT,
    code: "no-route",
    mend: {
      script: "ip link set eth1 up; ip route add default via 198.18.0.2; " +
        "ip address add fd99::1/64 dev eth1 nodad; ip -6 route add default via fd99::2",
    },
  },
  {
    what: "the host has no default route",
    break: "ip route delete default",
    ask: ["web", "192.0.2.9", "icmp"],
    code: "no-route",
    mend: { script: "" },
    undo: "ip route add default via 198.18.0.2",
  },
  {
    what: "a route prohibits it",
    break: "ip route add prohibit 198.18.0.2",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip route delete prohibit 198.18.0.2" },
  },
  {
    what: "a route is a black hole",
    break: "ip route add blackhole 198.18.0.2",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip route delete blackhole 198.18.0.2" },
  },
  {
    what: "a route is unreachable",
    break: "ip route add unreachable 198.18.0.2",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip route delete unreachable 198.18.0.2" },
  },
  {
    what: "a routing rule prohibits the subnet",
    break: "ip rule add from 10.40.0.0/24 priority 100 prohibit",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip rule delete priority 100" },
  },
  {
    what: "answers go another way",
    break:
      "ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; ip route add default dev vpn0 table 52; ip rule add to 10.40.0.0/24 priority 90 lookup 52",
    ask: OUT,
    code: "nobody-answers",
    verdict: "unknown",
    mend: { script: "ip rule delete priority 90; ip link delete vpn0" },
  },
  {
    what: "the reverse path is strict, and the way back another",
    break:
      "ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; ip route add 10.40.0.2 dev vpn0; sysctl -qw net.ipv4.conf.shop0.rp_filter=1",
    ask: OUT,
    code: "rp-filter",
    mend: { script: "ip link delete vpn0; sysctl -qw net.ipv4.conf.shop0.rp_filter=0" },
  },
  {
    what: "the container has another MAC for its gateway",
    break: "ip -n web neighbour replace 10.40.0.1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    ask: OUT,
    code: "wrong-neighbour",
    mend: "printed",
  },
  {
    what: "the host has a former container's MAC",
    break: "ip neighbour replace 10.40.0.2 lladdr 02:00:00:00:00:77 dev shop0 nud permanent",
    ask: OUT,
    code: "wrong-neighbour",
    mend: "printed",
  },
  {
    what: "another container's MAC is taken for its neighbour's",
    break: "ip -n web neighbour replace 10.40.0.3 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    ask: BESIDE,
    code: "wrong-neighbour",
    mend: "printed",
  },
  {
    what: "both ports are isolated",
    break: "for each in $(ls /sys/class/net/shop0/brif); do ip link set $each type bridge_slave isolated on; done",
    ask: BESIDE,
    code: "port-isolated",
    mend: {
      script:
        "for each in $(ls /sys/class/net/shop0/brif); do ip link set $each type bridge_slave isolated off; done",
    },
  },
  {
    what: "a rule of bridges between two ports",
    break: other("forward", "drop;", "accept", "bridge", "0"),
    ask: BESIDE,
    code: "bridge-drop",
    mend: "printed",
  },
  {
    what: "a rule of bridges for what is for the host",
    break: other("input", "ip saddr 10.40.0.2 drop;", "accept", "bridge", "0"),
    ask: OUT,
    code: "bridge-drop",
    mend: "printed",
  },
  {
    what: "a rule of the bridge's own link",
    break: nft(
      "table netdev other { chain c { type filter hook ingress device eth1 priority 0; tcp sport 7000 drop; } }",
    ),
    ask: OUT,
    code: "device-drop",
    mend: "printed",
  },
  {
    what: "a rule of the uplink as it sends",
    break: nft(
      "table netdev other { chain c { type filter hook egress device eth1 priority 0; tcp dport 7000 drop; } }",
    ),
    ask: OUT,
    code: "device-drop",
    mend: "printed",
  },
  {
    what: "masquerading is gone",
    break: "nft flush table ip nat; nft delete table ip nat; nft flush ruleset",
    ask: OUT,
    code: "no-masquerade",
    mend: "printed",
  },
  {
    what: "a firewall within the container",
    break: `ip netns exec web ${
      nft("table ip own { chain out { type filter hook output priority 0; tcp dport 7000 drop; } }")
    }`,
    ask: OUT,
    code: "output-drop",
    mend: "printed",
    undo: "ip netns exec web nft flush ruleset",
  },
  {
    what: "a firewall within the container takes nothing in",
    break: `ip netns exec web ${
      nft("table ip own { chain in { type filter hook input priority 0; policy drop; } }")
    }`,
    ask: PORT,
    code: "input-drop",
    mend: "printed",
    undo: "ip netns exec web nft flush ruleset",
  },
  {
    what: "the container's route prohibits it",
    break: "ip -n web route add prohibit 198.18.0.2",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip -n web route delete prohibit 198.18.0.2" },
  },
  {
    what: "two networks are kept apart by a stranger",
    break: other("forward", "iifname shop0 oifname farm0 drop;"),
    ask: FAR,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "the rules of the published port are gone",
    break: "nft flush ruleset; iptables -t nat -A POSTROUTING -s 10.40.0.0/24 ! -d 10.40.0.0/24 -j MASQUERADE",
    ask: PORT,
    code: "no-mapping",
    mend: "printed",
  },
  {
    what: "a foreign rule takes the published port away",
    break: nft(
      "table ip other { chain c { type nat hook prerouting priority -150; tcp dport 8080 dnat to 10.41.0.9:80; } }",
    ),
    ask: PORT,
    code: "nobody-answers",
    verdict: "unknown",
    mend: { script: "nft delete table ip other" },
  },
  {
    what: "two ends, of which one is dead",
    break: nft(
      "table ip other { chain c { type nat hook prerouting priority -150; ip daddr 198.18.0.1 tcp dport 9000 dnat to numgen inc mod 2 map { 0 : 10.41.0.2 . 80, 1 : 10.41.0.2 . 81 }; } }",
    ),
    ask: ["outside", "198.18.0.1", "tcp/9000"],
    sometimes: true,
    code: "nobody-listens",
    mend: {
      script: "nft delete table ip other; nft add table ip other" +
        "; nft add chain ip other c '{ type nat hook prerouting priority -150; }'; nft add rule ip other c ip daddr 198.18.0.1 tcp dport 9000 dnat to 10.41.0.2:80",
    },
  },
  {
    what: "IPv6 is not forwarded",
    break: "sysctl -qw net.ipv6.conf.all.forwarding=0",
    ask: OUT6,
    code: "forwarding-off",
    mend: "printed",
  },
  {
    what: "ip6tables has the policy DROP",
    break: "ip6tables -P FORWARD DROP",
    ask: OUT6,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "a neighbour of IPv6 is another one's",
    break: "ip -n web neighbour replace fd40::1 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
    ask: OUT6,
    code: "wrong-neighbour",
    mend: "printed",
  },
  {
    what: "the container has IPv6 switched off",
    break: "ip netns exec web sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1",
    ask: OUT6,
    code: "no-address",
    mend: { script: "" },
    undo: "ip netns exec web sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0",
  },
  {
    what: "a route of IPv6 is unreachable",
    break: "ip -6 route add unreachable fd99::2",
    ask: OUT6,
    code: "route-refused",
    mend: { script: "ip -6 route delete unreachable fd99::2" },
  },
  {
    what: "127.0.0.1 may not leave the host",
    break: "sysctl -qw net.ipv4.conf.shop0.route_localnet=0 net.ipv4.conf.all.route_localnet=0",
    ask: ["host", "127.0.0.1", "tcp/8080"],
    code: "localnet-off",
    mend: "printed",
  },
  {
    what: "the container's own published port, without hairpin",
    break: "sysctl -qw net.bridge.bridge-nf-call-iptables=1",
    ask: ["web", "198.18.0.1", "tcp/8080"],
    code: "hairpin-off",
    mend: "printed",
    undo: "for each in $(ls /sys/class/net/shop0/brif); do ip link set $each type bridge_slave hairpin off; done",
  },
  {
    what: "the host's rules judge frames of its bridge",
    break: "sysctl -qw net.bridge.bridge-nf-call-iptables=1; iptables -P FORWARD DROP",
    ask: BESIDE,
    code: "forward-drop",
    mend: "printed",
  },
  { what: "ebtables", break: "ebtables-nft -A FORWARD -j DROP", ask: BESIDE, code: "bridge-drop", mend: "printed" },
  {
    what: "mangle drops what is forwarded",
    break: "iptables -t mangle -A FORWARD -i shop0 -j DROP",
    ask: OUT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "the administrator's chain of Docker",
    break: "iptables -N DOCKER-USER; iptables -I FORWARD -j DOCKER-USER; iptables -A DOCKER-USER -o eth1 -j DROP",
    ask: OUT,
    code: "forward-drop",
    owner: "the administrator",
    mend: "printed",
  },
  {
    what: "ufw's policy for what is routed",
    break:
      "iptables -N ufw-before-forward; iptables -A FORWARD -j ufw-before-forward; iptables -A ufw-before-forward -p icmp -j ACCEPT; iptables -N ufw-reject-forward; iptables -A FORWARD -j ufw-reject-forward; iptables -A ufw-reject-forward -j REJECT",
    ask: OUT,
    code: "forward-drop",
    owner: "ufw",
    mend: "printed",
  },
  {
    what: "firewalld's last rule",
    break: nft(
      "table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; policy accept; ct state { established, related } accept; iifname lo accept; reject with icmpx admin-prohibited; } }",
    ),
    ask: OUT,
    code: "forward-drop",
    owner: "firewalld",
    mend: "printed",
  },
  {
    what: "firewalld's reverse-path check of IPv6, and a way back by another link",
    break: nft(
      "table inet firewalld { chain raw_PREROUTING { type filter hook prerouting priority -290; icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept; meta nfproto ipv6 fib saddr . mark . iif oif missing drop; } }",
    ) + "; ip -6 route add fd40::2/128 dev farm0 metric 1",
    ask: OUT6,
    code: "prerouting-drop",
    owner: "firewalld",
    mend: { script: "ip -6 route delete fd40::2/128 dev farm0" },
  },
  {
    what: "a container's link without ARP",
    break: "ip -n web link set eth0 arp off",
    ask: OUT,
    code: "wrong-neighbour",
    mend: "printed",
  },
  {
    what: "a rule behind the routes that asks for the first link",
    break: other("postrouting", 'iifname "shop0" oifname "eth1" tcp dport 7000 drop'),
    ask: OUT,
    code: "postrouting-drop",
    mend: "printed",
  },
  {
    what: "a mark by a hash, for which a routing rule asks",
    break: other("prerouting", "meta mark set jhash tcp sport mod 1 offset 2", "accept", "inet", "-150") +
      "; ip rule add fwmark 2 priority 81 prohibit",
    ask: OUT,
    code: "undecided",
    verdict: "unknown",
    mend: { script: "ip rule delete priority 81" },
  },
  {
    what: "a routing rule for the ports that clients have",
    break: "ip rule add ipproto tcp sport 32768-60999 priority 82 prohibit",
    ask: OUT,
    code: "undecided",
    verdict: "unknown",
    mend: { script: "ip rule delete priority 82" },
  },
  {
    what: "somebody else's translation of a published port",
    break: "iptables -t nat -I PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80",
    ask: PORT,
    code: "port-taken",
    verdict: "unknown",
    mend: { script: "iptables -t nat -D PREROUTING 1" },
  },
  {
    what: "a rule where a port of the bridge sends",
    break: `dev=$(ip -o link show master shop0 | head -1 | cut -d: -f2 | cut -d@ -f1 | tr -d ' '); ${
      nft("table netdev other { chain c { type filter hook egress device DEVICE priority 0; tcp dport 80 drop; } }")
        .replace("DEVICE", "'$dev'")
    }`,
    ask: ["jug", "web", "tcp/80"],
    code: "device-drop",
    mend: "printed",
  },
  {
    what: "echoes that the host does not take",
    break: "iptables -P INPUT DROP",
    ask: ["outside", "198.18.0.1"],
    code: "input-drop",
    mend: "printed",
  },
  {
    what: "a mark takes another table, which prohibits",
    break:
      "iptables -t mangle -A PREROUTING -i shop0 -j MARK --set-mark 5; ip rule add fwmark 5 priority 80 prohibit",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip rule delete priority 80" },
  },
  {
    what: "the container's default route leads to nobody",
    break: "ip -n web route replace default via 10.40.0.77",
    ask: OUT,
    code: "gateway-missing",
    mend: "printed",
    undo: "ip -n web route replace default via 10.40.0.1",
  },
  {
    what: "a stranger's translation of names",
    break: nft(
      "table ip other { chain c { type nat hook prerouting priority -150; udp dport 53 dnat to 10.40.0.1:5399; } }",
    ),
    ask: ["web", "10.40.0.1", "udp/53"],
    code: "nobody-listens",
    mend: { script: "nft delete table ip other" },
  },
  {
    what: "the host's own packets are dropped as they leave",
    break: "iptables -A OUTPUT -d 10.40.0.2 -j DROP",
    ask: ["host", "web", "tcp/80"],
    code: "output-drop",
    mend: "printed",
  },
  {
    what: "the host takes no answers",
    break: nft("table inet other { chain c { type filter hook input priority 0; iifname shop0 drop; } }"),
    ask: ["host", "web", "tcp/80"],
    code: "input-drop",
    mend: "printed",
  },
  {
    what: "connections are not tracked, so nothing is masqueraded",
    break: "iptables -t raw -A PREROUTING -i shop0 -j CT --notrack",
    ask: OUT,
    code: "no-masquerade",
    mend: { script: "iptables -t raw -F PREROUTING" },
  },
  {
    what: "a program listens at 127.0.0.1 alone",
    break: "true",
    ask: ["web", "jug", "tcp/82"],
    code: "listens-on-loopback",
    mend: { script: "" },
  },
  {
    what: "the other network's bridge is down",
    break: "ip link set farm0 down",
    ask: FAR,
    code: "leads-away",
    mend: { script: "ip link set farm0 up" },
  },
  {
    what: "the other network's bridge has lost its address",
    break: "ip address flush dev farm0",
    ask: FAR,
    code: "leads-away",

    mend: "printed",
  },
  {
    what: "the answer is sent out again",
    break: "ip route add 10.40.0.0/25 via 198.18.0.2",
    ask: OUT,
    code: "answer-elsewhere",
    mend: { script: "ip route delete 10.40.0.0/25" },
  },
  {
    what: "a routing rule prohibits echoes alone",
    break: "ip rule add ipproto icmp iif shop0 priority 70 prohibit",
    ask: ["web", "198.18.0.2", "icmp"],
    code: "route-refused",
    mend: { script: "ip rule delete priority 70" },
  },
  {
    what: "a routing rule's table is unreachable",
    break: "ip rule add from 10.40.0.2 priority 71 unreachable",
    ask: OUT,
    code: "route-refused",
    mend: { script: "ip rule delete priority 71" },
  },
  {
    what: "the receiver ignores echoes",
    break: "ip netns exec jug sysctl -qw net.ipv4.icmp_echo_ignore_all=1",
    ask: ["web", "jug", "icmp"],
    code: "echo-ignored",
    mend: { script: "ip netns exec jug sysctl -qw net.ipv4.icmp_echo_ignore_all=0" },
  },
  {
    what: "answers are not tracked",
    break: nft("table inet other { chain c { type filter hook prerouting priority raw; iifname eth1 notrack; } }"),
    ask: OUT,
    code: "answer-elsewhere",
    mend: { script: "nft delete table inet other" },
  },
  {
    what: "a bridge that asks the host's rules by itself",
    break:
      "sysctl -qw net.bridge.bridge-nf-call-iptables=0; ip link set shop0 type bridge nf_call_iptables 1; iptables -P FORWARD DROP",
    ask: BESIDE,
    code: "forward-drop",
    mend: "printed",
    undo: "ip link set shop0 type bridge nf_call_iptables 0",
  },
  {
    what: "a rule of the bridge's own ingress",
    break: nft(
      "table netdev other { chain c { type filter hook ingress device shop0 priority 0; tcp dport 7000 drop; } }",
    ),
    ask: OUT,
    code: "device-drop",
    mend: "printed",
  },
  {
    what: "the uplink has no carrier",
    break: "ip -n outside link set eth0 down",
    ask: OUT,
    code: "no-carrier",
    mend: { script: "ip -n outside link set eth0 up" },
  },
  {
    what: "a neighbour has taken a container's address",
    break:
      "ip -n jug address add 10.40.0.2/24 dev eth0; ip neighbour replace 10.40.0.2 lladdr $(ip netns exec jug cat /sys/class/net/eth0/address) dev shop0 nud permanent",
    ask: OUT,
    code: "address-twice",
    mend: { script: "ip -n jug address delete 10.40.0.2/24 dev eth0; ip neighbour delete 10.40.0.2 dev shop0" },
  },
  {
    what: "frames between ports are not translated back",
    break:
      "sysctl -qw net.bridge.bridge-nf-call-iptables=0; nft 'table ip other {\nchain c {\ntype nat hook prerouting priority -150\nip saddr 10.40.0.2 tcp dport 9000 dnat to 10.40.0.3:80\n}\n}'",
    ask: ["web", "198.18.0.1", "tcp/9000"],
    code: "answer-untranslated",
    mend: { script: "sysctl -qw net.bridge.bridge-nf-call-iptables=1" },
  },
  {
    what: "the container's port is disabled",
    break: `bridge link set dev ${PORT_OF_WEB} state 0`,
    ask: OUT,
    code: "port-blocked",
    mend: "printed",
  },
  {
    what: "the port of who is asked learns, and does not forward",
    break: `bridge link set dev ${PORT_OF_WEB} state 2`,
    ask: ["jug", "web", "tcp/80"],
    code: "port-blocked",
    mend: "printed",
  },
  {
    what: "the host's own packets, where the port listens",
    break: `bridge link set dev ${PORT_OF_WEB} state 1`,
    ask: ["host", "web", "tcp/80"],
    code: "port-blocked",
    mend: "printed",
  },
  {
    what: "the container sends with an address of the host",
    break:
      "ip -n web address add 198.18.0.1/32 dev eth0; ip -n web route replace default via 10.40.0.1 src 198.18.0.1",
    ask: OUT,
    code: "martian",
    mend: {
      script: "ip -n web route replace default via 10.40.0.1; ip -n web address delete 198.18.0.1/32 dev eth0",
    },
  },
  {
    what: "a port that is published at 127.0.0.1 alone, from outside",
    break: "true",
    ask: ["outside", "host:8090", "tcp"],
    code: "published-elsewhere",
    mend: { script: "" },
  },
  {
    what: "a port that is published at 127.0.0.1 alone, by the bridge's address",
    break: "true",
    ask: ["web", "10.40.0.1", "tcp/8090"],
    code: "published-elsewhere",
    mend: { script: "" },
  },
  {
    what: "a container and the host send it to each other",
    break: "ip netns exec web sysctl -qw net.ipv4.ip_forward=1; ip route add 10.99.0.0/24 via 10.40.0.2",
    // The other network is not masqueraded: what comes back with an address of the host would be a martian.
    ask: ["far", "10.99.0.1", "icmp"],
    code: "too-far",
    verdict: "unknown",
    mend: { script: "ip -n web address add 10.99.0.1/32 dev lo; ip -n web link set lo up" },
    undo: "ip route delete 10.99.0.0/24; ip -n web address flush dev lo; ip -n web link set lo down; " +
      "ip netns exec web sysctl -qw net.ipv4.ip_forward=0",
  },
  {
    what: "the container's link is gone",
    break: "ip -n web link delete eth0",
    ask: OUT,
    code: "no-link",
    mend: { script: "" },
  },
];
