/** What can stop a packet, as codes that scripts compare: each has a page (docs/explain.md) made of this table. */

export interface CodeText {
  /** What has happened, in general. */
  title: string;
  /** What to look at, and what mends it. */
  help: string;
}

export const codes = {
  "no-link": {
    title: "the container has no such link",
    help: "Its link is gone, or is in another namespace. Detach the container, and attach it again.",
  },
  "link-down": {
    title: "a link on the way is down",
    help: "`ip -d link show` says which. A link of a container is set up by `patchbay repair`.",
  },
  "no-carrier": {
    title: "a link on the way has no carrier",
    help: "The other end of a pair is down, a cable is out, or a bridge has no port that is up.",
  },
  "no-address": {
    title: "the sender has no address of the family",
    help: "`patchbay repair` gives a container the addresses of its ADD.",
  },
  "no-route": {
    title: "there is no route to the destination",
    help: "`ip route get` says so, too. A container gets its routes by `routes` or `isDefaultGateway`. " +
      "An internal network of podman has no way out.",
  },
  "route-refused": {
    title: "a route or a routing rule refuses the packet",
    help:
      "Routes of the types prohibit, unreachable and blackhole refuse. `ip rule` and `ip route show table all` list them.",
  },
  "forwarding-off": {
    title: "the host does not forward packets",
    help: "`sysctl net.ipv4.ip_forward`. Files in /etc/sysctl.d and services of the network set it when they start.",
  },
  "link-forwarding-off": {
    title: "the host does not forward packets of one link",
    help: "`sysctl net.ipv4.conf.LINK.forwarding` is 0, although the value for all is 1.",
  },
  "rp-filter": {
    title: "the reverse-path filter drops the packet",
    help: "The way back to the sender is by another link. `rp_filter` 2 takes any way; symmetric routes need none.",
  },
  "martian": {
    title: "the kernel takes a packet with such an address from nobody",
    help: "A source that is the host's own, or a loopback address that comes from outside.",
  },
  "localnet-off": {
    title: "a packet of 127.0.0.1 may not leave the host",
    help: "`portmap` needs `snat`, which sets route_localnet and masquerades what comes from 127.0.0.1.",
  },
  "wrong-neighbour": {
    title: "a neighbour's MAC address is another one's",
    help:
      "`ip neighbour del` makes the kernel ask again. The entry is of a former container, or somebody announced it.",
  },
  "gateway-missing": {
    title: "nobody has the gateway's address",
    help:
      "The bridge has lost it, or the network's `gateway` is an address of nobody. `patchbay repair` gives it to the bridge.",
  },
  "nobody-answers": {
    title: "nobody who is seen here has the address",
    help: "The kernel has asked for the neighbour in vain so far, or has not asked yet. `ip neighbour` shows it.",
  },
  "not-a-port": {
    title: "the container's end on the host is no port of its bridge",
    help: "Another program took it off the bridge. `patchbay repair` puts it back.",
  },
  "port-blocked": {
    title: "a port of the bridge does not forward",
    help: "`bridge link show` has its state: the spanning tree, or a port that is down.",
  },
  "port-isolated": {
    title: "both ports of the bridge are isolated",
    help: "`portIsolation` of the network keeps containers apart, on purpose.",
  },
  "hairpin-off": {
    title: "the bridge does not send a frame back to its own port",
    help:
      "A container that reaches itself by its published port needs `hairpinMode` of the bridge where rules of the host judge frames of bridges (bridge-nf-call-iptables).",
  },
  "vlan-mismatch": {
    title: "the ports of the bridge have no VLAN in common",
    help: "`bridge vlan show`; the option `vlan` of the bridge. Networks of two VLANs are apart on purpose.",
  },
  "macvlan-host": {
    title: "a macvlan or ipvlan does not reach its own host",
    help: "It is made so. A macvlan of the host on the same parent, with a route to the container, reaches it.",
  },
  "prerouting-drop": { title: "a rule drops what comes in", help: "The rule and its owner stand in the answer." },
  "input-drop": {
    title: "a rule drops what is for the host, or for the container itself",
    help: "Names at the bridge's address (port 53) and services of the host need a rule that accepts them.",
  },
  "forward-drop": {
    title: "a rule drops what is forwarded",
    help:
      "Docker and ufw set the policy of iptables' FORWARD to DROP. The plugin `firewall` accepts a container's packets there.",
  },
  "output-drop": { title: "a rule drops what is sent here", help: "The rule and its owner stand in the answer." },
  "postrouting-drop": { title: "a rule drops what leaves", help: "The rule and its owner stand in the answer." },
  "bridge-drop": {
    title: "a rule of bridges drops the frame",
    help: "`nft list ruleset bridge`, and ebtables. `macspoofchk` drops frames with another MAC address, as meant.",
  },
  "device-drop": {
    title: "a rule of one link drops the packet before all others",
    help: "Chains of the hooks ingress and egress: `nft list ruleset netdev`.",
  },
  "leads-away": {
    title: "the way to a container of this host leads out of it",
    help:
      "The route to its subnet is gone, or a narrower one wins: its bridge is down, has no address, or a VPN has the subnet.",
  },
  "kept-apart": {
    title: "a rule keeps networks or containers apart, on purpose",
    help:
      "The answer names the option, or the engine that does so. Change the network, detach the container, and attach it again.",
  },
  "no-masquerade": {
    title: "the packet leaves with its private address, although the network masquerades",
    help: "The rules of `ipMasq` are gone or are not reached. `patchbay repair` makes them again.",
  },
  "echo-ignored": {
    title: "the receiver answers no echo",
    help: "`sysctl net.ipv4.icmp_echo_ignore_all` is 1. Ask for a port in the place of icmp.",
  },
  "nobody-listens": {
    title: "nothing listens at the port",
    help: "The program has not started, has ended, or listens at another port or address.",
  },
  "no-mapping": {
    title: "no rule leads a published port to its container",
    help:
      "Another program has taken the rules away, or the packet does not reach them. `patchbay repair` makes them again. " +
      "What listens at the port of the host, as podman does, is not the container.",
  },
  "published-elsewhere": {
    title: "the port is published at another address of the host",
    help: "A port may be published at one address alone, such as 127.0.0.1. Nobody reaches one by ::1.",
  },
  "listens-on-loopback": {
    title: "the program listens at 127.0.0.1 only",
    help: "Within a container it has to listen at 0.0.0.0 or at the container's address.",
  },
  "answer-untranslated": {
    title: "the answer comes from another address than was asked",
    help:
      "It did not pass where the address was translated: with bridge-nf-call-iptables 0, frames between ports of a bridge do not.",
  },
  "answer-elsewhere": {
    title: "the answer takes a way that does not lead back",
    help: "Routing rules and routes of the host decide: `ip rule`, `ip route get ADDRESS from ADDRESS`.",
  },
  "address-twice": {
    title: "two containers have one address",
    help: "Leases were lost, or two networks give out one subnet. Detach one of the two, and attach it again.",
  },
  "port-taken": {
    title: "a published port leads to somebody else",
    help: "A rule before ours gives the packet another destination, or a program of the host has the port: " +
      "`iptables -t nat -S`, `nft list ruleset`, `ss -lnp`.",
  },
  "lease-unheld": {
    title: "a lease of host-local is of no attachment that is on record",
    help:
      "Its container was removed without DEL, or another program attached it. `patchbay ipam list` shows them, and " +
      "`patchbay ipam release` gives one back. Too many of them empty the pool.",
  },
  "lease-missing": {
    title: "an attachment has an address without the lease for it",
    help:
      "Somebody has removed or replaced the file of the lease. The next container may get the same address: detach " +
      "this one, and attach it again.",
  },
  "engine-without-network": {
    title: "an engine finds no network for its pods",
    help: "It takes the first file of its directory by name. `patchbay lint` says what is wrong with it.",
  },
  "forwarding-reset": {
    title: "a file sets forwarding to 0 when the host starts, or when its service is restarted",
    help: "sysctl.d(5) says which file wins. What Patchbay has switched on is off again then.",
  },
  "neighbours-full": {
    title: "the table of neighbours is nearly full",
    help: "Behind `net.ipv4.neigh.default.gc_thresh3` the kernel forgets neighbours, and sending fails now and then.",
  },
  "connections-full": {
    title: "the table of connections is nearly full",
    help: "Behind `net.netfilter.nf_conntrack_max` new connections are dropped.",
  },
  "bridge-full": {
    title: "a bridge has nearly all the ports that it may have",
    help: "A bridge takes 1,023 ports. Give the network a second one.",
  },
  "two-backends": {
    title: "rules are in nf_tables and in the older tables of iptables",
    help: "Both judge every packet, and `nft` and `iptables` list one kind each. Move to one of them.",
  },
  "rules-unread": {
    title: "rules could not be read",
    help: "They change faster than they are read, or the kernel does not let this process read them.",
  },
  "undecided": {
    title: "it depends on what cannot be known beforehand",
    help: "Limits, sets that rules fill, programs of the kernel, and queues decide when the packet comes.",
  },
  "kernel-program": {
    title: "a program in the kernel sees the packet, and may drop it",
    help: "XDP and filters of tc: `bpftool net` lists them. `retis` and `pwru` show what became of a packet.",
  },
  "other-switch": {
    title: "another switch decides",
    help:
      "Open vSwitch has rules of its own: `ovs-appctl ofproto/trace`. A VRF has routes of its own: `ip route show vrf NAME`. `--live` shows whether a packet passes.",
  },
  "too-far": {
    title: "the packet goes round in circles, or takes more ways than are followed",
    help: "Routes or translations lead back to where it came from.",
  },
} satisfies Record<string, CodeText>;

export type Code = keyof typeof codes;
