/**
 * The rules of portmap for each backend: written, refused, checked and removed, also beside the reference plugin's.
 *
 * Longer than 300 lines: the same tests run for each backend, on one set-up.
 */
import { expect, test } from "bun:test";
import { chainName } from "../../src/resources/packets/port-mappings/iptables.ts";
import { legacyPath } from "../support/legacy-iptables.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { GO_PLUGINS, PATCHBAY } from "../support/plugins.ts";

const backends = ["nftables", "iptables"] as const;

/** A machine with a bridge, on which the containers of these tests would be. */
async function openHost(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(
    "ip link add br0 type bridge; for each in 10.20.0.1/16 10.21.0.1/16 10.22.0.1/16 fd20::1/64; do ip address add $each dev br0; done; ip link set br0 up",
  );
  return machine;
}

/** What a bridge plugin would have answered for the container c1, c2 and so on. */
function attachedTo(bridge: string, { netnsPath, name }: Container, net = "20", ifName = "eth0") {
  const number = 10 + Number(name.slice(1));
  return {
    cniVersion: "1.0.0",
    interfaces: [{ name: bridge }, { name: `veth${number}` }, { name: ifName, sandbox: netnsPath }],
    ips: [
      { address: `10.${net}.0.${number}/16`, gateway: `10.${net}.0.1`, interface: 2 },
      { address: `fd${net}::${number}/64`, gateway: `fd${net}::1`, interface: 2 },
    ],
  };
}

const tcp = (hostPort: number, containerPort = 80, more: Record<string, unknown> = {}) => ({
  hostPort,
  containerPort,
  protocol: "tcp",
  ...more,
});

function mapped(...portMappings: object[]) {
  return { conf: { runtimeConfig: { portMappings } } };
}

function portmap(machine: Machine, conf: Record<string, unknown> = {}, bin?: string) {
  return network(machine, { type: "portmap", cniVersion: "1.0.0", ...conf }, bin, {
    own: (container) => ({ prevResult: attachedTo("br0", container) }),
  });
}

/** The rule set without what counts, and without what iptables leaves behind empty. */
async function ruleset(machine: Machine): Promise<string> {
  const text = await machine.sh("nft list ruleset");
  return text.replace(/^# Warning.*\n/gm, "").replace(/packets \d+ bytes \d+/g, "");
}

const inMaps = async (machine: Machine) => {
  const text = await machine.sh("nft list table inet patchbay_portmap 2>/dev/null || true");
  return [...text.matchAll(/(\S+ \. \S+(?: \. \S+)?) comment "id: ctr-(\w+),[^"]*" : ([^\s,]+(?: \. [^\s,]+)?)/g)]
    .filter(([, key]) => !key!.startsWith("0x")).map(([, key, owner, value]) => `${key} → ${value} (${owner})`)
    .sort();
};

test("nftables: what was added twice is there once, and nothing is left after DEL, byte for byte", async () => {
  await using machine = await openHost();
  await machine.sh("nft 'table inet theirs { chain c { type filter hook input priority 0; counter; }; }'");
  const before = await ruleset(machine), route = "cat /proc/sys/net/ipv4/conf/br0/route_localnet";
  const [one, two] = [await machine.container(), await machine.container()];
  const net = portmap(machine, { cniVersion: "1.1.0", backend: "nftables" });
  const result = await net.add(one, mapped(tcp(8080), tcp(53, 5353, { protocol: "udp", hostIP: "192.0.2.1" })));
  expect(result).toEqual({ ...attachedTo("br0", one), cniVersion: "1.1.0" });
  const first = await ruleset(machine);
  await net.add(one, mapped(tcp(8080), tcp(53, 5353, { protocol: "udp", hostIP: "192.0.2.1" })));
  expect(await ruleset(machine)).toBe(first);
  expect(await inMaps(machine)).toEqual([
    "192.0.2.1 . udp . 53 → 10.20.0.11 . 5353 (c1)",
    "tcp . 8080 → 10.20.0.11 . 80 (c1)",
    "tcp . 8080 → fd20::11 . 80 (c1)",
  ]);
  await net.add(two, mapped(tcp(8081)));
  await net.check(one, mapped(tcp(8080), tcp(53, 5353, { protocol: "udp", hostIP: "192.0.2.1" })));
  expect(await machine.sh(route)).toBe("1\n");
  await net.del(two, mapped(tcp(8081)));
  expect(await ruleset(machine)).toBe(first);
  await net.del(one);
  await net.del(one);
  expect(await ruleset(machine)).toBe(before);
  expect(await machine.sh(route)).toBe("0\n");
  // The listing is one that nft reads.
  await machine.sh(`printf '%s' "$RULES" | nft -c -f -`, { env: { RULES: first } });
});

test("iptables: the chains that all share are what is left after DEL, as by the reference plugin", async () => {
  await using machine = await openHost();
  const mappings = mapped(tcp(8080), tcp(8443, 443), tcp(53, 5353, { protocol: "udp" }));
  const saved = (on: Machine) =>
    on.sh("iptables-save -t nat; ip6tables-save -t nat").then((text) =>
      text.replace(/^#.*\n/gm, "").replace(/ \[\d+:\d+\]/g, "")
    );
  await using other = await openHost();
  const [ours, theirs] = [await machine.container(), await other.container()];
  const net = portmap(machine, { backend: "iptables" }), reference = portmap(other, {}, GO_PLUGINS);
  await net.add(ours, mappings);
  await reference.add(theirs, mappings);
  // The rules that are left out keep ::1, and 127.0.0.0/8 but 127.0.0.1, for the host.
  const alike = (await saved(machine)).replace(/^-A CNI-DN-.* -d (127\.0\.0\.(1\/32|0\/8)|::1\/128) .*\n/gm, "");
  expect(alike).toBe(await saved(other));
  const there = await ruleset(machine);
  await net.add(ours, mappings);
  expect(await ruleset(machine)).toBe(there);
  await net.check(ours, mappings);
  await net.del(ours);
  await reference.del(theirs, mappings);
  expect(await saved(machine)).toBe(await saved(other));
  expect(await saved(machine)).not.toMatch(/CNI-DN/);
});

test("nftables: a port has one holder, who is named, and nothing is changed", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  const net = portmap(machine, { backend: "nftables" });
  const range = Array.from({ length: 100 }, (_, index) => tcp(9000 + index, 9000 + index));
  await net.add(one, mapped(tcp(8080), ...range));
  const before = await ruleset(machine);
  const refused = async (...portMappings: object[]) => {
    const { json } = await net.call("ADD", two, mapped(...portMappings));
    expect(await ruleset(machine)).toBe(before);
    expect(await machine.sh("find /run/patchbay -name '*c2*'")).toBe("");
    return `${json.code} ${json.msg}; ${json.details}`;
  };
  const holder = "taken by container ctr-c1, interface eth0 of network net; it leads to";
  expect(await refused(tcp(8000), tcp(8080))).toMatch(`999 host port 8080/tcp is ${holder} 10.20.0.11:80;`);
  expect(await refused(tcp(9050))).toMatch(`host port 9050/tcp is ${holder} 10.20.0.11:9050;`);
  expect(
    await refused(...range.slice(90), ...Array.from({ length: 20 }, (_, index) => tcp(9100 + index, 9100 + index))),
  )
    .toMatch(`host port 9090/tcp is ${holder} 10.20.0.11:9090;`);
  expect(await refused(...Array.from({ length: 100 }, (_, index) => tcp(8050 + index, 8050 + index))))
    .toMatch(`host port 8080/tcp is ${holder} 10.20.0.11:80;`);
  // Another protocol, or an address by itself, is another port.
  await net.add(two, mapped(tcp(8080, 80, { protocol: "udp" }), tcp(8080, 80, { hostIP: "192.0.2.1" })));
  expect(await inMaps(machine)).toEqual([
    "192.0.2.1 . tcp . 8080 → 10.20.0.12 . 80 (c2)",
    "tcp . 8080 → 10.20.0.11 . 80 (c1)",
    "tcp . 8080 → fd20::11 . 80 (c1)",
    "tcp . 9000-9099 → 10.20.0.11 (c1)",
    "tcp . 9000-9099 → fd20::11 (c1)",
    "udp . 8080 → 10.20.0.12 . 80 (c2)",
    "udp . 8080 → fd20::12 . 80 (c2)",
  ]);
  await net.del(one);
  await net.del(two);
  expect(await machine.sh("nft list ruleset")).toBe("");
});

for (const backend of backends) {
  // With rules the kernel looks at each of the container's for every fifteen ports.
  const count = backend === "nftables" ? 10_000 : 2000;
  test(`${backend}: ${count} mappings of one container`, async () => {
    await using machine = await openHost();
    const container = await machine.container();
    const net = portmap(machine, { backend });
    const many = mapped(...Array.from({ length: count }, (_, index) => tcp(10_000 + index, 20_000 + index % 7000)));
    await net.add(container, many);
    await net.check(container, many);
    await net.add(container, many);
    expect((await machine.sh("nft list ruleset | grep -c 10.20.0.11")).trim()).toMatch(/^\d{4,5}$/);
    await net.del(container, many);
    expect(await machine.sh("nft list ruleset")).not.toMatch(/10\.20\.0|CNI-DN|patchbay/);
  });

  test(`${backend}: DEL finds everything without ledger, namespace, prevResult or mappings`, async () => {
    await using machine = await openHost();
    const left = [await machine.container(), await machine.container(), await machine.container()];
    const neighbour = await machine.container();
    const net = portmap(machine, { backend, cniVersion: "1.1.0" });
    for (const [index, each] of left.entries()) await net.add(each, mapped(tcp(8080 + index)));
    await machine.sh("rm -rf /run/patchbay");
    await net.add(neighbour, mapped(tcp(9000)));
    const stays = async () => expect(await machine.sh("nft list ruleset")).toMatch(/10\.20\.0\.14/);
    await net.del(left[0]!, mapped(tcp(8080)));
    await stays();
    const other = backend === "nftables" ? "iptables" : "nftables";
    await net.del(left[1]!, { conf: { prevResult: undefined, backend: other }, env: { CNI_NETNS: "" } });
    await stays();
    await net.gc([neighbour]);
    await stays();
    expect(await machine.sh("nft list ruleset")).not.toMatch(/10\.20\.0\.1[123]\b|CNI-DN.*c[123]\b|ctr-c[123]/);
    await net.check(neighbour, mapped(tcp(9000)));
    await machine.sh("rm -rf /run/patchbay");
    await net.del(neighbour, { conf: { prevResult: undefined }, env: { CNI_NETNS: "" } });
    expect(await machine.sh("nft list ruleset")).not.toMatch(/10\.20\.0|CNI-DN|ctr-|patchbay/);
  });

  test(`${backend}: CHECK misses what others removed, and repair puts it back`, async () => {
    await using machine = await openHost();
    const container = await machine.container();
    const net = portmap(machine, { backend });
    await net.add(container, mapped(tcp(8080), tcp(8081)));
    const before = await ruleset(machine);
    const spoil = backend === "nftables"
      ? "nft delete element inet patchbay_portmap ports_ipv4 '{ tcp . 8080 }'; nft flush chain inet patchbay_portmap output"
      : "iptables -t nat -F $(iptables -t nat -S | sed -n 's/^-N \\(CNI-DN-.*\\)/\\1/p'); ip6tables -t nat -F OUTPUT";
    for (const harm of [spoil, "nft flush ruleset; echo 0 > /proc/sys/net/ipv4/conf/br0/route_localnet"]) {
      await machine.sh(harm);
      const { json } = await net.call("CHECK", container, mapped(tcp(8080), tcp(8081)));
      expect(json.msg).toMatch(/8080|CNI-DN-/);
      if (harm !== spoil) expect(json.msg).toMatch(/net.ipv4.conf.br0.route_localnet is not 1/);
      const { code, stdout } = await machine.run([PATCHBAY, "repair", "net", "ctr-c1"]);
      expect([code, stdout]).toEqual([0, expect.stringContaining("mended")]);
      await net.check(container, mapped(tcp(8080), tcp(8081)));
      expect((await ruleset(machine)).split("\n").sort()).toEqual(before.split("\n").sort());
    }
  });

  test(`${backend}: two networks of one container, and two interfaces, go one by one`, async () => {
    await using machine = await openHost();
    const container = await machine.container();
    const first = portmap(machine, { backend }), second = portmap(machine, { backend, name: "other" });
    const apart = { conf: { ...mapped(tcp(8081)).conf, prevResult: attachedTo("br0", container, "21") } };
    const other = attachedTo("br0", container, "20", "eth1");
    other.ips = [{ address: "10.22.0.11/16", gateway: "10.22.0.1", interface: 2 }];
    const eth1 = (change: object) => ({
      ifName: "eth1",
      conf: { ...mapped(tcp(8082)).conf, prevResult: other, ...change },
    });
    await first.add(container, mapped(tcp(8080)));
    await second.add(container, apart);
    await first.add(container, eth1({}));
    await second.del(container, apart);
    await first.check(container, mapped(tcp(8080)));
    await first.check(container, eth1({}));
    await first.del(container, mapped(tcp(8080)));
    await first.check(container, eth1({}));
    await first.del(container, eth1({}));
    expect(await machine.sh("nft list ruleset")).not.toMatch(/CNI-DN|patchbay/);
  });
}

const waysNowhere = {
  "no route": "ip address flush dev br0",
  ...Object.fromEntries(
    ["unreachable", "prohibit", "blackhole", "throw"].map((type) => [
      `a route of type ${type}`,
      `ip address flush dev br0; ip route add ${type} 10.20.0.0/16`,
    ]),
  ),
  "a rule that prohibits it": "ip rule add to 10.20.0.0/16 prohibit priority 10",
};

for (const backend of backends) {
  test(`${backend}: a host without a way to the container has its ports, and no localhost setting`, async () => {
    for (const [what, commands] of Object.entries(waysNowhere)) {
      await using machine = await openHost();
      await machine.sh(commands);
      const container = await machine.container(), ports = mapped(tcp(8080));
      const net = portmap(machine, { backend, cniVersion: "1.1.0" });
      const before = await machine.sh("sysctl -a 2>/dev/null | grep route_localnet");
      const { code, stderr } = await net.call("ADD", container, ports);
      expect([what, code, stderr]).toEqual([what, 0, ""]);
      expect(await machine.sh("nft list ruleset")).toMatch(/10\.20\.0\.11/);
      expect(await machine.sh("nft list ruleset")).not.toMatch(/patchbay_localhost/);
      expect(await machine.sh("sysctl -a 2>/dev/null | grep route_localnet")).toBe(before);
      for (const ledger of ["as ADD wrote it", "lost"]) {
        if (ledger === "lost") await machine.sh("rm -rf /run/patchbay");
        await net.check(container, ports);
        for (const verb of ["inspect", "repair"]) {
          const { code, stdout } = await machine.run([PATCHBAY, verb]);
          expect([what, ledger, verb, code, stdout]).toEqual([
            what,
            ledger,
            verb,
            0,
            expect.not.stringMatching(/differs/),
          ]);
        }
      }
      await net.del(container, ports);
      await net.del(container, ports);
      expect(await machine.sh("nft list ruleset")).not.toMatch(/10\.20\.0\.11|patchbay/);
    }
  });
}

test("nftables: a container has a port through the first of its networks that asks for it", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  const first = portmap(machine, { backend: "nftables" });
  const second = portmap(machine, { backend: "nftables", name: "other" });
  const range = Array.from({ length: 20 }, (_, index) => tcp(9000 + index, 9000 + index));
  const ports = mapped(tcp(8080), ...range);
  const again = { ifName: "eth1", conf: { ...ports.conf, prevResult: attachedTo("br0", one, "21", "eth1") } };
  await first.add(one, ports);
  const before = await inMaps(machine);
  await second.add(one, again);
  expect(await inMaps(machine)).toEqual(before);
  await second.check(one, again);
  // Another port of it is another mapping, and so is one of a container whose id begins like its own.
  for (const [container, change] of [[one, { containerId: "ctr-c1" }], [two, { containerId: "ctr-c" }]] as const) {
    const prevResult = attachedTo("br0", container, "22", "eth2");
    const conf = { ...mapped(tcp(8080, container === one ? 81 : 80)).conf, prevResult };
    const { json } = await second.call("ADD", container, { ...change, ifName: "eth2", conf });
    expect(json.msg).toMatch(/^host port 8080\/tcp is taken by container ctr-c1, interface eth0 of network net$/);
    expect(json.details).toBe("it leads to 10.20.0.11:80; DEL of that attachment frees it");
  }
  await first.del(one, ports);
  expect(await inMaps(machine)).toEqual([]);
  const { json } = await second.call("CHECK", one, again);
  expect(json.msg).toMatch(/host port 8080\/tcp .* is missing/);
  expect((await machine.run([PATCHBAY, "repair", "other", "ctr-c1"])).code).toBe(0);
  await second.check(one, again);
  expect(await inMaps(machine)).toContain("tcp . 8080 → 10.21.0.11 . 80 (c1)");
  await second.del(one, again);
  expect(await machine.sh("nft list ruleset")).toBe("");
});

test("nftables: who has a port already is named with its address, of IPv6, too", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  const ofV6 = (container: Container, hostIP?: string) => {
    const { ips, ...rest } = attachedTo("br0", container);
    return { conf: { ...mapped({ ...tcp(8080), hostIP }).conf, prevResult: { ...rest, ips: ips.slice(1) } } };
  };
  const net = portmap(machine, { backend: "nftables" });
  await net.add(one, ofV6(one));
  const { json } = await net.call("ADD", two, ofV6(two));
  expect(json.details).toBe("it leads to [fd20::11]:80; DEL of that attachment frees it");
  await net.del(one, ofV6(one));
  await net.add(one, ofV6(one, "fd99::1"));
  const { json: ofAddress } = await net.call("ADD", two, ofV6(two, "fd99::1"));
  expect(ofAddress.msg).toMatch(/^host port \[fd99::1\]:8080\/tcp is taken by container ctr-c1,/);
});

test("nftables: mappings that the container has no address for make nothing", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  const { ips, ...rest } = attachedTo("br0", container);
  const only = mapped(tcp(8080, 80, { hostIP: "fd20::1" }));
  const conf = { ...only.conf, prevResult: { ...rest, ips: ips.slice(0, 1) } };
  const net = portmap(machine, { backend: "nftables" });
  await net.add(container, { conf });
  expect(await machine.sh("nft list ruleset; cat /proc/sys/net/ipv4/conf/br0/route_localnet")).toBe("0\n");
  await net.check(container, { conf });
  await net.del(container, { conf });
});

test("nftables: a container with several addresses has its ports at the first of each family", async () => {
  await using machine = await openHost();
  const one = await machine.container(), prevResult = attachedTo("br0", one);
  const more = [{ address: "10.20.0.99/16", interface: 2 }, { address: "fd20::99/64", interface: 2 }];
  const others = [{ address: "10.20.0.98/16", interface: 0 }];
  prevResult.ips = [...others, ...prevResult.ips, ...more] as typeof prevResult.ips;
  const net = portmap(machine, { backend: "nftables" });
  await net.add(one, { conf: { ...mapped(tcp(80)).conf, prevResult } });
  expect(await inMaps(machine)).toEqual(["tcp . 80 → 10.20.0.11 . 80 (c1)", "tcp . 80 → fd20::11 . 80 (c1)"]);
});

test("nftables: a port that is mapped at one family already is mapped at the other", async () => {
  await using machine = await openHost();
  const one = await machine.container(), net = portmap(machine, { backend: "nftables" });
  for (const hostIP of ["::", "0.0.0.0"]) {
    await net.add(one, mapped(tcp(80, 80, { hostIP }), tcp(80)));
    expect(await inMaps(machine)).toEqual(["tcp . 80 → 10.20.0.11 . 80 (c1)", "tcp . 80 → fd20::11 . 80 (c1)"]);
    await net.del(one);
  }
});

test("route_localnet is set for ports of all addresses and of 127.0.0.0/8, and for no others", async () => {
  await using machine = await openHost();
  const one = await machine.container(), net = portmap(machine, { backend: "nftables" });
  const expected = { "": "1", "0.0.0.0": "1", "127.0.0.2": "1", "10.20.0.1": "0", "::": "0", "fd20::1": "0" };
  for (const [hostIP, setting] of Object.entries(expected)) {
    await net.add(one, mapped(tcp(80, 80, { hostIP })));
    const read = await machine.sh("cat /proc/sys/net/ipv4/conf/br0/route_localnet");
    expect({ hostIP, setting: read.trim() }).toEqual({ hostIP, setting });
    await net.del(one);
  }
});

test("route_localnet is taken back when somebody flushed what guards it, and only if it is ours", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  const net = portmap(machine, { backend: "nftables" }), file = "/proc/sys/net/ipv4/conf/br0/route_localnet";
  const [first, second] = [mapped(tcp(8080)), mapped(tcp(8081))];
  const route = () => machine.sh(`cat ${file}; nft list ruleset`);
  await net.add(one, first);
  await machine.sh("nft flush ruleset");
  await net.del(one, first);
  expect(await route()).toBe("0\n");
  await net.add(one, first);
  await net.add(two, second);
  await machine.sh("nft flush ruleset");
  await net.del(one, first);
  expect(await route()).toBe("1\n");
  await net.del(two, second);
  expect(await route()).toBe("0\n");
  for (const last of [two, one]) {
    await net.add(one, first);
    await machine.sh("nft flush ruleset");
    await net.add(two, second);
    await net.del(last === one ? two : one, last === one ? second : first);
    // What the other one had was flushed, too.
    expect(await route()).toMatch(last === one ? /^0/ : /^1/);
    await net.del(last, last === one ? first : second);
    expect(await route()).toBe("0\n");
  }
  await machine.sh(`echo 1 > ${file}`);
  await net.add(one, first);
  await machine.sh("nft flush ruleset");
  await net.add(two, second);
  await net.del(one, first);
  await net.del(two, second);
  expect(await route()).toBe("1\n");
});

test("nftables: ADD again, by another bridge and with other ports, leaves nothing of the first", async () => {
  await using machine = await openHost();
  const container = await machine.container(), net = portmap(machine, { backend: "nftables" });
  const conditions = { conditionsV4: ["ip", "saddr", "!=", "192.0.2.0/24"] };
  await net.add(container, { conf: { ...mapped(tcp(8080), tcp(8081)).conf, ...conditions } });
  await machine.sh("ip link add br1 type bridge; ip address add 10.30.0.1/16 dev br1; ip link set br1 up");
  await net.add(container, { conf: { ...mapped(tcp(8081)).conf, prevResult: attachedTo("br1", container, "30") } });
  const settings = () => machine.sh("cat /proc/sys/net/ipv4/conf/br[01]/route_localnet");
  expect(await settings()).toBe("0\n1\n");
  await net.del(container);
  expect(await settings()).toBe("0\n0\n");
  expect(await machine.sh("nft list ruleset")).toBe("");
});

test("iptables, in either form: ADD again with other ports leaves nothing of the first", async () => {
  for (const env of [undefined, { PATH: legacyPath() }]) {
    await using machine = await openHost();
    const container = await machine.container(), net = portmap(machine, { backend: "iptables" });
    const saved = () =>
      machine.sh(`${env === undefined ? "iptables-save" : "iptables-legacy-save"} -t nat | grep ' CNI-DN' || true`);
    await net.add(container, { ...mapped(tcp(8080), tcp(8081)), env });
    await net.add(container, { ...mapped(tcp(8081), tcp(8082)), env });
    const rules = await saved();
    expect([rules.includes("8080"), rules.match(/--dport 808[12] -j DNAT/g)?.length]).toEqual([false, 4]);
    await net.del(container, { env });
    expect(await saved()).toBe("");
  }
});

test("the reference plugin removes what we made with the iptables backend", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  await portmap(machine, { backend: "iptables" }).add(one, mapped(tcp(8080), tcp(53, 53, { protocol: "udp" })));
  await portmap(machine, { backend: "iptables" }).add(two, mapped(tcp(8081)));
  await portmap(machine, {}, GO_PLUGINS).del(one, mapped(tcp(8080), tcp(53, 53, { protocol: "udp" })));
  const left = await machine.sh("iptables-save -t nat; ip6tables-save -t nat");
  expect(left).not.toMatch(/8080|ctr-c1|10\.20\.0\.11/);
  expect(left).toMatch(/10\.20\.0\.12:80/);
});

/** As the reference plugin writes it since 1.9 (with `hostip_hostports` as before it). */
const cniHostport = (family: "ip" | "ip6", one: string, two: string) => `
  table ${family} cni_hostport {
    chain hostports {
      tcp dport 8080 dnat to ${one} comment "ctr-c1"
      tcp dport 8081 dnat to ${two} comment "ctr-c1"
      tcp dport 8082 dnat to ${two} comment "ctr-c2"
    }
    chain hostip_hostports { ${family} daddr ${
  one.replace(/:80$/, "")
} tcp dport 8083 dnat to ${one} comment "ctr-c1"; }
    chain masquerading {
      type nat hook postrouting priority 100;
      ${family} saddr ${one.replace(/:80$/, "").replace(/[[\]]/g, "")} ${family} daddr ${
  one.replace(/:80$/, "").replace(/[[\]]/g, "")
} masquerade comment "ctr-c1"
    }
  }`;

test("DEL and CHECK know what the reference plugin made, in every form it had", async () => {
  await using machine = await openHost();
  const [one, two] = [await machine.container(), await machine.container()];
  const theirs = portmap(machine, {}, GO_PLUGINS), ours = portmap(machine, { cniVersion: "1.1.0" });
  await theirs.add(one, mapped(tcp(8080)));
  await theirs.add(two, mapped(tcp(8081)));
  const sn = chainName({ network: "net", containerId: "ctr-c1" }, "CNI-SN-");
  await machine.sh(`
    iptables -t nat -N CNI-HOSTPORT-SNAT; iptables -t nat -N ${sn}
    iptables -t nat -A ${sn} -s 127.0.0.1 -j MASQUERADE; iptables -t nat -A CNI-HOSTPORT-SNAT -j ${sn}`);
  const prevResult = attachedTo("br0", one);
  await ours.check(one, { conf: { ...mapped(tcp(8080)).conf, prevResult } });
  await ours.del(one, { conf: { backend: "nftables" } });
  const left = await machine.sh("iptables-save -t nat; ip6tables-save -t nat");
  expect(left).not.toMatch(/ctr-c1|10\.20\.0\.11|CNI-SN/);
  expect(left).toMatch(/10\.20\.0\.12:80/);
  await ours.gc([one]);
  expect(await machine.sh("iptables-save -t nat; ip6tables-save -t nat")).not.toMatch(/CNI-DN|ctr-c2/);

  await machine.sh("nft flush ruleset; nft -f -", {
    stdin: cniHostport("ip", "10.20.0.11:80", "10.21.0.11:80") + cniHostport("ip6", "[fd20::11]:80", "[fd21::11]:80"),
  });
  const nft = () => machine.sh("nft list ruleset");
  await ours.check(one, { conf: { ...mapped(tcp(8080)).conf, prevResult } });
  await ours.del(one, { conf: { prevResult } });
  expect(await nft()).not.toMatch(/10\.20\.0\.11|fd20::11/);
  expect((await nft()).match(/comment "ctr-c1"/g)).toHaveLength(2);
  await ours.del(one, { conf: { prevResult: undefined } });
  expect(await nft()).not.toMatch(/ctr-c1/);
  expect((await nft()).match(/comment "ctr-c2"/g)).toHaveLength(2);
});

test("STATUS names what is missing", async () => {
  await using machine = await openHost();
  const status = async (conf: Record<string, unknown>) => {
    const { code, json } = await portmap(machine, { cniVersion: "1.1.0", ...conf }).call("STATUS", undefined);
    return code === 0 ? "" : `${json.code} ${json.msg}`;
  };
  expect(await status({})).toBe("");
  expect(await status({ backend: "nftables", conditionsV4: ["ip saddr 10.0.0.0/8"] })).toBe("");
  expect(await machine.sh("nft list ruleset")).toBe("");
  const external = { externalSetMarkChain: "KUBE-MARK-MASQ" };
  expect(await status(external)).toBe(
    '50 portmap by iptables: externalSetMarkChain "KUBE-MARK-MASQ" is not in the table nat of iptables',
  );
  const container = await machine.container();
  const { json } = await portmap(machine, external).call("ADD", container, mapped(tcp(80)));
  expect(json.msg).toBe('externalSetMarkChain "KUBE-MARK-MASQ" is not in the table nat of iptables');
  await machine.sh("iptables -t nat -N KUBE-MARK-MASQ; ip6tables -t nat -N KUBE-MARK-MASQ");
  expect(await status(external)).toBe("");
  await portmap(machine, external).add(container, mapped(tcp(80)));
});

test("older tables: a chain of others that one family lacks is missed before anything is made", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  await machine.sh("iptables-legacy -t nat -N EXTERNAL");
  const saved = () =>
    machine.sh("iptables-legacy-save; ip6tables-legacy-save").then((text) => text.replace(/^#.*\n/gm, ""));
  const before = await saved(), env = { PATH: legacyPath() };
  const net = portmap(machine, { externalSetMarkChain: "EXTERNAL" });
  const { json } = await net.call("ADD", container, { ...mapped(tcp(8080)), env });
  expect(json.msg).toBe('externalSetMarkChain "EXTERNAL" is not in the table nat of ip6tables');
  expect(await saved()).toBe(before);
});

const wrong: [name: string, conf: Record<string, unknown>, message: RegExp][] = [
  ["no container port", mapped({ hostPort: 80 }).conf, /Invalid container port number: 0$/],
  ["shell in the protocol", mapped(tcp(80, 80, { protocol: "tcp -j ACCEPT" })).conf, /"protocol": "tcp -j accept"/],
  ["a chain that is none", { externalSetMarkChain: "X -j ACCEPT" }, /"externalSetMarkChain": "X -j ACCEPT"/],
  [
    "a condition that is no rule",
    { conditionsV4: ["-j", "ACCEPT"] },
    /"conditionsV4": "-j" is not a condition known here$/,
  ],
  [
    "shell in a condition",
    { conditionsV6: ["ip6 saddr $(reboot)"] },
    /"conditionsV6": "\$\(reboot\)" is no address of IPv6$/,
  ],
  ["the other family", { conditionsV6: ["-s", "10.0.0.0/8"] }, /"10.0.0.0\/8" is no address of IPv6$/],
  ["a condition twice", { conditionsV4: ["-s", "10.0.0.1", "-s", "10.0.0.2"] }, /two conditions on the source$/],
];

test("what is wrong is refused with the key and the value, and nothing is changed", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  for (const [name, conf, message] of wrong) {
    const { json } = await portmap(machine).call("ADD", container, { conf: { ...mapped(tcp(80)).conf, ...conf } });
    expect([name, json.code, json.msg]).toEqual([name, 7, expect.stringMatching(message)]);
    const change = { conf: { ...mapped(tcp(80)).conf, ...conf, prevResult: attachedTo("br0", container) } };
    expect([name, (await portmap(machine).call("CHECK", container, change)).json.code]).toEqual([name, 7]);
    await portmap(machine).del(container, change);
  }
  const { json } = await portmap(machine).call("ADD", container, { conf: { prevResult: undefined } });
  expect([json.code, json.msg]).toEqual([7, "must be called as chained plugin"]);
  expect(await machine.sh("nft list ruleset; find /run/patchbay -type f ! -name 'serve~*' 2>/dev/null || true")).toBe(
    "",
  );
  // Said twice, and for one family in another way, it is one.
  const again = mapped(tcp(80), tcp(80), tcp(80, 80, { hostIP: "0.0.0.0" }));
  const nft = portmap(machine, { backend: "nftables" });
  await nft.add(container, again);
  await nft.add(container, again);
  expect(await inMaps(machine)).toEqual(["tcp . 80 → 10.20.0.11 . 80 (c1)", "tcp . 80 → fd20::11 . 80 (c1)"]);
  await nft.del(container);
  // containerd writes the keys so.
  const folded = {
    runtimeConfig: { PortMappings: [{ HostPort: 80, ContainerPort: 8080, Protocol: "TCP", HostIP: "" }] },
  };
  await portmap(machine).add(container, { conf: folded });
  expect(await machine.sh("iptables -t nat -S")).toMatch("--to-destination 10.20.0.11:8080");
});
