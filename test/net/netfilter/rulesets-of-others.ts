/** The files in rulesets/: whose their rules are, and what becomes of connections. */
import type { Judged, Question } from "./judge.ts";

/** A container of ours connects to somebody outside. */
export const out: Question = { from: "10.40.0.2", to: "198.51.100.9", port: 443, input: "shop0", output: "eth1" };
const out6: Question = { ...out, from: "fd40::2", to: "2001:db8::9" };
/** Somebody connects to a container of the other program, or goes by its link. */
const into = (output: string, to: string, port = 81): Question => ({ ...out, to, port, output });

interface SavedRuleset {
  file: string;
  /** By chain, whose its rules are; "policy" of a chain is the chain with a colon. */
  makers: Record<string, string>;
  asked: { question: Question; fate: Judged["fate"]; by?: string[]; doubts?: string[] }[];
}

const passes = (question: Question, doubts: string[] = []) => ({ question, fate: "passes", doubts });
const stops = (question: Question, fate: string, ...by: string[]) => ({ question, fate, by });

export const rulesets: SavedRuleset[] = [
  {
    file: "docker.iptables",
    makers: {
      "ip filter DOCKER-FORWARD": "Docker",
      "ip nat DOCKER": "Docker",
      "ip filter FORWARD": "Docker",
      "ip filter FORWARD:": "another program (Docker's chains are here)",
      "ip raw PREROUTING":
        "another program (Docker's and fail2ban's chains are here; the rule is for a link of Docker)",
      "ip filter f2b-web": "fail2ban",
      "ip filter DOCKER-USER": "fail2ban, the administrator (DOCKER-USER is a chain for rules of one's own)",
    },
    asked: [
      stops(out, "is dropped", "the policy of ip filter FORWARD: another program (Docker's chains are here)"),
      stops(
        into("docker0", "172.17.0.5"),
        "is dropped",
        'iifname != "docker0" oifname "docker0" drop: Docker',
      ),
      stops(
        into("eth9", "198.51.100.66"),
        "is dropped",
        'oifname "eth9" ip daddr 198.51.100.66 drop: the administrator (DOCKER-USER is a chain for rules of one\'s own)',
      ),
      stops({ ...out, from: "203.0.113.5" }, "is rejected", "ip saddr 203.0.113.5 reject: fail2ban"),
    ],
  },
  {
    file: "docker.nft",
    makers: { "ip docker-bridges filter-FORWARD": "Docker", "ip docker-bridges filter-FORWARD:": "Docker" },
    asked: [
      passes(out),
      stops(
        into("docker0", "172.17.0.5"),
        "is dropped",
        'drop comment "UNPUBLISHED PORT DROP": Docker',
      ),
      stops(
        { ...out, to: "172.17.0.2", hook: "prerouting" },
        "is dropped",
        'ip daddr 172.17.0.2 iifname != "docker0" drop: Docker',
      ),
    ],
  },
  {
    file: "firewalld.nft",
    makers: { "inet firewalld filter_FORWARD": "firewalld", "inet firewalld filter_FWD_public": "firewalld" },
    asked: [
      stops(out, "is rejected", "reject: firewalld"),
      stops(out6, "is rejected", "reject: firewalld"),
    ],
  },
  {
    file: "kube-proxy.iptables",
    makers: {
      "ip filter KUBE-FORWARD": "kube-proxy",
      "ip nat KUBE-SVC-CCCCCCCCCCCCCCCC": "kube-proxy",
      "ip filter KUBE-FIREWALL": "kubelet",
      "ip filter INPUT": "kubelet",
      "ip filter FORWARD": "kube-router, kube-proxy",
    },
    asked: [
      passes(out),
      stops(into("eth1", "10.96.0.99", 25), "is rejected", "ip daddr 10.96.0.99 tcp dport 25 reject: kube-proxy"),
    ],
  },
  {
    file: "kube-proxy.nft",
    makers: { "ip kube-proxy filter-forward": "kube-proxy", "ip kube-proxy reject-chain": "kube-proxy" },
    asked: [
      passes(out),
      stops(into("eth1", "10.96.0.99", 25), "is rejected", "reject: kube-proxy"),
      stops(
        into("eth1", "10.96.0.20", 26),
        "is rejected",
        "ip daddr @cluster-ips reject: kube-proxy",
      ),
    ],
  },
  {
    file: "ufw.iptables",
    makers: {
      "ip filter FORWARD": "ufw",
      "ip filter ufw-user-forward": "ufw",
      "ip filter FORWARD:": "another program (ufw's chains are here)",
    },
    asked: [
      {
        ...stops(out, "is dropped", "the policy of ip filter FORWARD: another program (ufw's chains are here)"),
        doubts: ["limit"],
      },
      stops(into("eth9", "203.0.113.9"), "is dropped", 'oifname "eth9" ip daddr 203.0.113.0/24 drop: ufw'),
    ],
  },
  {
    file: "ufw.ip6tables",
    makers: { "ip6 filter FORWARD": "ufw", "ip6 filter ufw6-before-forward": "ufw" },
    asked: [
      {
        question: out6,
        fate: "is dropped",
        by: [
          "the policy of ip6 filter FORWARD: another program (ufw's chains are here)",
          "xt rt … drop: ufw",
        ],
        doubts: ["match rt", "limit"],
      },
    ],
  },
  {
    file: "tailscale.iptables",
    makers: {
      "ip filter FORWARD": "Tailscale",
      "ip filter ts-forward": "Tailscale",
      "ip nat ts-postrouting": "Tailscale",
    },
    asked: [
      passes(out),
      stops(
        { ...into("tailscale0", "100.99.0.1"), from: "100.64.0.9" },
        "is dropped",
        'oifname "tailscale0" ip saddr 100.64.0.0/10 drop: Tailscale',
      ),
    ],
  },
  {
    file: "libvirt.iptables",
    makers: { "ip filter FORWARD": "libvirt", "ip filter LIBVIRT_FWI": "libvirt", "ip nat POSTROUTING": "libvirt" },
    asked: [
      passes(out),
      stops(into("virbr0", "192.168.122.9"), "is rejected", 'oifname "virbr0" reject: libvirt'),
    ],
  },
  {
    file: "libvirt.nft",
    makers: { "ip libvirt_network forward": "libvirt", "ip libvirt_network guest_input": "libvirt" },
    asked: [passes(out), stops(into("virbr0", "192.168.122.9"), "is rejected", "oif N reject: libvirt")],
  },
  {
    file: "netavark.iptables",
    makers: {
      "ip filter FORWARD": "netavark",
      "ip filter NETAVARK_FORWARD": "netavark",
      "ip nat NETAVARK-HOSTPORT-DNAT": "netavark of 4f1c0de2 in podman",
    },
    asked: [passes(out), passes({ ...out, from: "10.88.0.5" })],
  },
  {
    file: "netavark.nft",
    makers: { "inet netavark FORWARD": "netavark", "inet netavark nv_2f259bab_10_88_0_0_nm16_dnat": "netavark" },
    asked: [
      passes(out),
      passes({ ...into("podman1", "10.89.0.2"), input: "podman1" }),
    ],
  },
  {
    file: "others.iptables",
    makers: {
      "ip filter FORWARD":
        "Calico, Cilium, flannel, Antrea, CNI plugins (patchbay, too, writes such rules), Nomad, " +
        "NetworkManager, firewalld, LXD, Incus, another program (Antrea's, Cilium's, CNI plugins' and others' chains are here)",
      "ip filter CNI-ADMIN": "the administrator (CNI-ADMIN is a chain for rules of one's own)",
      "ip filter FWDI_public": "firewalld",
      "ip filter OWN-RULES": "another program",
      "ip filter NOMAD-ADMIN": "Nomad",
      "ip nat POSTROUTING":
        "CNI plugins of 4f1c0de2 in shop (patchbay, too, writes such rules), nerdctl of default-" +
        "0123456789abcdef".repeat(4) + " in bridge (patchbay, too, writes such rules), " +
        "Nomad of 5f2c9c1e-0001-0002-0003-000000000004 in nomad (patchbay, too, writes such rules)",
    },
    asked: [
      stops(
        into("eth1", "198.51.100.7"),
        "is dropped",
        'ip daddr 198.51.100.7 drop comment "not for us": another program',
      ),
    ],
  },
  {
    file: "others.nft",
    makers: {
      "inet lxd fwd.lxdbr0": "LXD",
      "inet incus fwd.incusbr0": "Incus",
      "ip nm-shared-eth2 filter_forward": "NetworkManager",
      "ip io.systemd.nat postrouting": "systemd-networkd",
      "inet cni_plugins_masquerade postrouting": "CNI plugins",
      "ip calico filter-FORWARD": "Calico",
      "ip flannel-ipv4 forward": "flannel",
      "ip antrea antrea-forward": "Antrea",
      "inet f2b-table f2b-chain": "fail2ban",
      "inet filter forward": "another program",
      "inet filter forward:": "another program",
    },
    asked: [
      stops(into("eth2", "10.42.0.7"), "is rejected", 'oifname "eth2" reject: NetworkManager'),
      stops(out, "is dropped", "the policy of inet filter forward: another program"),
    ],
  },
];
