/**
 * The commands of docs/troubleshooting.md find what is wrong, and mend it where the page says how: each section on a host
 * of its own with the network of docs/start.md, which is broken first.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/documents.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";
import { missingLines, runPage, stepsOf } from "../support/runnable-page.ts";

const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
const [network] = stepsOf("docs/start.md");

/** All namespaces share the size of the table, so no test fills it. */
const UNBROKEN = ["Connections fail on a busy host (conntrack)"];

/** The sections with commands, from the first command on. */
const sections = new Map(
  page.split(/^##+ /m).filter((section) => section.includes("```sh\n")).map((section) =>
    [section.split("\n")[0]!, section.slice(section.indexOf("```sh\n"))] as const
  ),
);

interface Breakage {
  /** After this, `works` fails. */
  broken: string;
  works?: string;
  /** Only who is not on this host can mend it. */
  isLeft?: true;
  needs?: Feature;
  isImpossible?: boolean;
}

/** Without br_netfilter the host's rules are not asked about what stays on a bridge. */
const asksAboutBridged = existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables");

const wget = "timeout 2 busybox wget -q -O -";
const fromOutside = `ip netns exec outside ${wget} http://198.51.100.1:8080/page`;

const breakages: Record<string, Breakage> = {
  "The node is not ready (cni plugin not initialized)": {
    broken:
      `echo '{ "cniVersion": "1.1.0", "name": "pods", "plugins": [ { "type": "loopback" }, ] }' >/etc/cni/net.d/10-pods.conflist`,
  },
  "A container does not reach itself by its published port (hairpin)": {
    broken: ":",
    works: `ip netns exec web ${wget} http://198.51.100.1:8080/page`,
  },
  "No internet": { broken: "ip link set eth1 down", works: "ip netns exec web ping -c 1 -W 1 198.51.100.2" },
  "Connection refused": {
    broken:
      'kill $(ip netns pids web); while [ "$(ip netns pids web)" ]; do sleep 0.02; done; ip netns exec web busybox httpd -p 127.0.0.1:80 -h /run',
    works: fromOutside,
    isLeft: true,
  },
  "Connection timed out": { broken: "iptables -P FORWARD DROP", works: fromOutside },
  "Which rule drops a packet": {
    broken: "iptables -A CNI-ADMIN -d 10.101.0.2 -j DROP",
    works: fromOutside,
    isLeft: true,
  },
  "Name not resolved": {
    broken: `
      dnsmasq --port=53 --no-resolv --no-hosts --address=/shop.test/192.0.2.9 -C /dev/null \\
        --pid-file=/run/dnsmasq.pid --user=root >/dev/null 2>&1
      iptables -P INPUT DROP`,
    works: "ip netns exec web timeout 2 busybox nslookup shop.test 10.101.0.1 | grep 192.0.2.9",
  },
  "Answers come and go (a duplicate address)": { broken: "ip -n db address add 10.101.0.2/24 dev eth0" },
  "Answers leave by another link (rp_filter)": {
    broken: `
      ip link add eth2 type veth peer name eth2 netns outside
      ip link set eth2 up; ip -n outside link set eth2 up
      ip address add 192.0.2.1/24 dev eth2; ip -n outside address add 192.0.2.2/24 dev eth2
      ip -n outside address add 203.0.113.9/32 dev lo; ip route add 203.0.113.9 via 198.51.100.2
      ip netns exec outside sysctl -qw net.ipv4.conf.all.arp_announce=2
      sysctl -qw net.ipv4.conf.eth2.rp_filter=1`,
    works: "ip netns exec outside ping -c 1 -W 1 -I 203.0.113.9 192.0.2.1",
  },
  "Only some destinations": {
    broken: `
      ip link add tun0 netns web type veth peer name tun1 netns web
      ip -n web link set tun0 up; ip -n web link set tun1 up
      ip -n web route add 198.51.100.0/24 dev tun0`,
    works: "ip netns exec web ping -c 1 -W 1 198.51.100.2",
  },
  "Neighbours on one bridge do not reach each other": {
    broken: "sysctl -qw net.bridge.bridge-nf-call-iptables=1; iptables -I FORWARD -i home0 -o home0 -j DROP",
    works: "ip netns exec web ping -c 1 -W 1 10.101.0.3",
    isImpossible: !asksAboutBridged,
  },
  "IPv6 does not work": {
    broken: "sysctl -qw net.ipv6.conf.all.disable_ipv6=1",
    works: "ip -6 address show dev home0 | grep -q fe80",
  },
  "127.0.0.1 does not answer in the container": {
    broken: "ip -n web link set lo down",
    works: `ip netns exec web ${wget} http://127.0.0.1/page`,
  },
  "The host does not reach its container": {
    broken: `
      cat >/etc/cni/net.d/30-lan.conflist <<END
{ "cniVersion": "1.1.0", "name": "lan", "plugins": [ { "type": "macvlan", "master": "eth1",
  "ipam": { "type": "static", "addresses": [ { "address": "198.51.100.9/24" } ] } } ] }
END
      ip netns add printer; patchbay add lan printer >/run/result
      ip netns exec printer ping -c 1 -W 1 198.51.100.2`,
    works: "ping -c 1 -W 1 198.51.100.9",
    needs: "macvlan links",
  },
  "Large packets vanish (MTU)": {
    // Neither router nor destination says that a packet was too large.
    broken: `
      ip netns add far; ip -n outside link add far0 mtu 1280 type veth peer name eth0 netns far
      ip -n outside address add 203.0.113.1/24 dev far0; ip -n outside link set far0 up
      ip -n far address add 203.0.113.2/24 dev eth0; ip -n far link set eth0 up
      ip -n far route add default via 203.0.113.1; ip route add 203.0.113.0/24 via 198.51.100.2
      ip netns exec outside sysctl -qw net.ipv4.ip_forward=1
      ip netns exec outside iptables -A OUTPUT -p icmp --icmp-type fragmentation-needed -j DROP
      ip netns exec far ethtool -K eth0 tso off gso off
      head -c 100000 /dev/zero >/run/large; ip netns exec far busybox httpd -p 80 -h /run`,
    works: `ip netns exec web ${wget} http://203.0.113.2/large`,
  },
};

const endServers = `
  for name in $(ls /run/netns); do kill $(ip netns pids $name) 2>/dev/null || true; done
  [ ! -e /run/dnsmasq.pid ] || kill $(cat /run/dnsmasq.pid)`;

async function openHost(started: AsyncDisposableStack): Promise<Machine> {
  const machine = started.use(await openMachine());
  started.defer(async () => void await machine.sh(endServers));
  await machine.sh(`
    mkdir -p /run/etc /run/bin && cp -a /etc/. /run/etc && rm -rf /run/etc/cni
    mount --bind /run/etc /etc; mount --bind /run/bin /usr/local/bin; ln -s ${PATCHBAY} /usr/local/bin/patchbay
    ip netns add outside; ip link add eth1 type veth peer name eth0 netns outside
    ip address add 198.51.100.1/24 dev eth1; ip link set eth1 up
    ip -n outside address add 198.51.100.2/24 dev eth0; ip -n outside link set eth0 up; ip -n outside link set lo up
    ip netns add web; ip netns add db`);
  await runPage(machine, [network!]);
  await machine.sh(`
    patchbay add home web --ports 8080:80 >/run/page; patchbay add home db >/run/result
    ip -n web link set lo up; ip netns exec web busybox httpd -p 80 -h /run`);
  return machine;
}

test("every section with commands is broken here", () => {
  expect([...Object.keys(breakages), ...UNBROKEN].sort()).toEqual([...sections.keys()].sort());
});

describe.each(Object.entries(breakages))("%s", (heading, { broken, works = "true", isLeft, needs, isImpossible }) => {
  test.skipIf(lacks(needs) || isImpossible === true)("is found, and mended where the page says how", async () => {
    await using started = new AsyncDisposableStack();
    const machine = await openHost(started);
    const isWorking = async () => (await machine.run(["sh", "-c", works])).code === 0;
    await machine.sh(broken);
    expect({ isWorking: await isWorking() }).toEqual({ isWorking: works === "true" });
    const steps = stepsOf(heading, sections.get(heading)).map((step) => ({ ...step, text: `set +e\n${step.text}` }));
    for (const { text, prints, printed } of (await runPage(machine, steps)).blocks) {
      expect({ text, printed, missing: missingLines(prints, printed ?? "") }).toMatchObject({ missing: [] });
    }
    // A link that was set up a moment ago may lose a packet.
    if (isLeft) expect({ isWorking: await isWorking() }).toEqual({ isWorking: false });
    else await untilTrue(isWorking, (works) => works);
  });
});
