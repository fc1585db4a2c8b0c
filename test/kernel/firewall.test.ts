/**
 * The firewall plugin's rules: which are whose, which stay and which go, take-over from and to the reference plugin,
 * and refusals. firewall-packets.test.ts sends the packets.
 *
 * Longer than 300 lines: the same tests run for each backend, on one set-up.
 */
import { expect, test } from "bun:test";
import { lateWith } from "../support/injection.ts";
import { legacyPath } from "../support/legacy-iptables.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { environmentOf, GO_PLUGINS, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { drive } from "../support/resources.ts";

/** `c1` has the addresses that end in 1. */
function own({ name, netnsPath }: Container) {
  const last = name.slice(1);
  const interfaces = [{ name: "br0" }, { name: `v${name}` }, { name: "eth0", sandbox: netnsPath }];
  const ips = [`10.20.0.${last}/24`, `fd20::${last}/64`].map((address) => ({ interface: 2, address }));
  return { prevResult: { cniVersion: "1.0.0", interfaces, ips } };
}

const conf = { type: "firewall", cniVersion: "1.0.0" };
const backends = [
  { name: "iptables", options: { backend: "iptables" }, env: undefined },
  { name: "iptables of the older tables", options: { backend: "iptables" }, env: { PATH: legacyPath() } },
  { name: "nftables", options: { backend: "nftables" }, env: undefined },
];

/** Everything there is in every form, without counts, handles and the empty tables that iptables leaves. */
async function rules(machine: Machine): Promise<string[]> {
  const text = await machine.sh(`
    iptables-save; ip6tables-save
    [ ! -e /proc/net/ip_tables_names ] || iptables-legacy-save
    [ ! -e /proc/net/ip6_tables_names ] || ip6tables-legacy-save
    nft list ruleset | sed -n '/^table inet/,/^}/p'`);
  return text.split("\n").map((line) => line.replace(/\[?\b\d+:\d+\]?/, "").replace(/packets \d+ bytes \d+/, ""))
    .filter((line) => line !== "" && !/^(#|\*|COMMIT|:(INPUT|FORWARD|OUTPUT|PREROUTING|POSTROUTING) )/.test(line));
}

/** What the reference plugin has, too. */
async function rulesOfIptables(machine: Machine): Promise<string[]> {
  const all = await rules(machine), own = all.findIndex((line) => line.startsWith("table inet "));
  return own < 0 ? all : all.slice(0, own);
}

/** The bridge that the results name. */
async function openHost(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh("ip link add br0 type bridge");
  return machine;
}

/** What is there for one container's addresses. */
async function rulesOf(machine: Machine, last: number): Promise<number> {
  const text = (await rules(machine)).join("\n");
  return [...text.matchAll(new RegExp(`\\b(10\\.20\\.0\\.|fd20::)${last}\\b`, "g"))].length;
}

for (const { name, options, env } of backends) {
  const open = (machine: Machine) =>
    network(machine, { ...conf, ...options, cniVersion: "1.1.0" }, undefined, { own, env });

  test(`${name}: ADD twice, CHECK, DEL twice`, async () => {
    await using machine = await openMachine();
    const [c1, c2] = [await machine.container(), await machine.container()];
    const net = open(machine);
    await net.add(c2);
    const before = await rules(machine);
    await net.add(c1);
    const added = await rules(machine);
    expect(await rulesOf(machine, 1)).toBe(name === "nftables" ? 2 : 4);
    await net.add(c1);
    expect(await rules(machine)).toEqual(added);
    await net.check(c1);
    await net.del(c1);
    expect(await rules(machine)).toEqual(before);
    await net.check(c2);
    const { code, json } = await net.call("CHECK", c1);
    expect([code, json.msg]).toEqual([1, expect.stringMatching(/10\.20\.0\.1.*fd20::1/)]);
    expect(await rules(machine)).toEqual(before);
    await net.del(c1);
    await net.del(c2);
    expect(await rulesOf(machine, 2)).toBe(0);
    if (name === "nftables") expect(await rules(machine)).toEqual([]);
  });

  test(`${name}: a late DEL leaves an address to its next owner`, async () => {
    await using machine = await openMachine();
    const [c1, c2, c3] = [await machine.container(), await machine.container(), await machine.container()];
    const net = open(machine), sameAddress = { conf: own(c1) };
    const { prevResult } = own(c1);
    await net.add(c1);
    await net.add(c2, sameAddress);
    await net.del(c1);
    await net.check(c2);
    // By its ledger, which is gone now, and restated.
    await net.del(c1, { conf: { prevResult } });
    await net.check(c2);
    await net.add(c3, sameAddress);
    await net.del(c2);
    await net.check(c3);
    await net.del(c3);
    expect(await rulesOf(machine, 1)).toBe(0);
  });

  test(`${name}: DEL without ledger, prevResult, or the backend it was made by; GC`, async () => {
    await using machine = await openMachine();
    const [c1, c2, c3] = [await machine.container(), await machine.container(), await machine.container()];
    const net = open(machine);
    for (const one of [c1, c2, c3]) await net.add(one);
    const other = options.backend === "iptables" ? "nftables" : "iptables";
    await machine.sh("rm -r /run/patchbay");
    await net.del(c1, { conf: { backend: other }, env: { ...env, CNI_NETNS: "" } });
    expect(await rulesOf(machine, 1)).toBe(0);
    await net.check(c2);
    await net.gc([c3]);
    // The older tables do not say whose a rule is, and the ledgers are gone.
    if (name !== "iptables of the older tables") expect(await rulesOf(machine, 2)).toBe(0);
    await net.check(c3);
    await net.add(c1);
    await net.gc([c3]);
    expect(await rulesOf(machine, 1)).toBe(0);
    await net.check(c3);
    await net.del(c2);
    await net.del(c3);
    expect([await rulesOf(machine, 2), await rulesOf(machine, 3)]).toEqual([0, 0]);
  });
}

test("iptables: rules that were saved and restored have no owner any more, and the ledgers tell", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  const net = network(machine, conf, undefined, { own });
  await net.add(c1);
  await net.add(c2);
  const before = await rules(machine);
  await machine.sh("iptables-save > /run/s; iptables -F; iptables -X; iptables-restore < /run/s");
  expect(await rules(machine)).toEqual(before);
  await net.add(c1);
  expect(await rules(machine)).toEqual(before);
  const late = await machine.container();
  await net.add(late, { conf: own(c1) });
  await net.del(c1);
  await net.check(late);
  await net.del(late);
  await net.check(c2);
  expect(await rulesOf(machine, 1)).toBe(0);
  await net.del(c2);
  expect(await rulesOf(machine, 2)).toBe(0);
});

test("iptables: rules without an owner are not claimed by a container whose namespace is gone", async () => {
  await using machine = await openMachine();
  const [c1, c2, c3] = [await machine.container(), await machine.container(), await machine.container()];
  const net = network(machine, conf, undefined, { own }), sameAddress = { conf: own(c1) };
  for (const [heir, isGone] of [[c2, false], [c3, true]] as const) {
    await net.add(c1);
    await net.add(heir, sameAddress);
    await machine.sh("iptables-save > /run/s; iptables -F; iptables -X; iptables-restore < /run/s");
    // Another program has called its DEL, or it was killed: the ledger stays.
    if (isGone) await machine.sh("ip netns del c1");
    await net.del(heir);
    const text = (await rules(machine)).join("\n");
    expect(text.includes("10.20.0.1/32")).toBe(!isGone);
  }
});

for (
  const { name, env } of [{ name: "restored", env: undefined }, {
    name: "in the older tables",
    env: backends[1]!.env,
  }]
) {
  test(`iptables, ${name}: two DELs at once do not leave the rules to each other`, async () => {
    await using machine = await openMachine();
    const [c1, c2, c3] = [await machine.container(), await machine.container(), await machine.container()];
    const net = network(machine, { ...conf, backend: "iptables" }, undefined, { own, env });
    await net.add(c1);
    await net.add(c2, { conf: own(c1) });
    await net.add(c3);
    if (env === undefined) {
      await machine.sh("iptables-save > /run/s; iptables -F; iptables -X; iptables-restore < /run/s");
    }
    // Each has looked whose the rules are before the other's ledger is gone.
    const ends = await Promise.all([c1, c2].map((container) => {
      const whole = { name: "net", ...conf, backend: "iptables", ...own(c1) };
      return lateWith(
        machine,
        patchbayPlugins(),
        { plugin: "firewall", command: "DEL", container, conf: whole, env },
        "unlink",
      );
    }));
    expect(ends).toMatchObject([{ code: 0, hit: true }, { code: 0, hit: true }]);
    expect([await rulesOf(machine, 1), await rulesOf(machine, 3)]).toEqual([0, 4]);
  });
}

/** What the release beside us writes for everybody with a policy, in the words of later ones. */
const inLaterWords = (line: string) =>
  line.replace(
    /\(ingressPolicy: same-bridge\)(" -j (RETURN|DROP|CNI-ISOLATION-STAGE-1))$/,
    "(ingressPolicy: same-bridge|isolated)$1",
  );

for (const ingressPolicy of ["open", "same-bridge"]) {
  test(`iptables, ${ingressPolicy}: the same rules as the reference plugin's; it removes ours, and we its`, async () => {
    const machines = [await openHost(), await openHost()] as const;
    const [ours, theirs] = machines;
    const bins = [undefined, GO_PLUGINS];
    const open = (index: number, policy: string) =>
      network(machines[index]!, { ...conf, ingressPolicy: policy }, bins[index], { own });
    try {
      const pairs: Container[][] = [];
      for (const [index, machine] of machines.entries()) {
        const pair = [await machine.container(), await machine.container()];
        for (const one of pair) await open(index, ingressPolicy).add(one);
        pairs.push(pair);
      }
      expect(await rulesOfIptables(ours)).toEqual((await rules(theirs)).map(inLaterWords));
      // Each by the other's program, which has no record of them.
      const byGo = network(ours, { ...conf, ingressPolicy }, GO_PLUGINS, { own });
      const byUs = network(theirs, { ...conf, ingressPolicy: "open" }, undefined, { own });
      for (const one of pairs[1]!) await byUs.check(one, { conf: own(one) });
      for (const [machine, net, pair] of [[ours, byGo, pairs[0]!], [theirs, byUs, pairs[1]!]] as const) {
        await net.del(pair[0]!, { conf: own(pair[0]!) });
        expect([await rulesOf(machine, 1), await rulesOf(machine, 2)]).toEqual([0, 4]);
        await net.del(pair[1]!, { conf: own(pair[1]!) });
        expect(await rulesOf(machine, 2)).toBe(0);
      }
      expect(await rulesOfIptables(ours)).toEqual((await rules(theirs)).map(inLaterWords));
    } finally {
      for (const machine of machines) await machine[Symbol.asyncDispose]();
    }
  });
}

test("an ADD that fails in the second family says why, and takes back the chains it made in the first", async () => {
  await using machine = await openHost();
  const [c1, c2] = [await machine.container(), await machine.container()];
  await machine.sh(`
    mkdir /run/broken
    printf '#!/bin/sh\\necho no such luck >&2; exit 3\\n' > /run/broken/ip6tables-legacy-restore
    chmod +x /run/broken/*`);
  const change = { ...conf, backend: "iptables", ingressPolicy: "isolated" };
  const broken = network(machine, change, undefined, { own, env: { PATH: `/run/broken:${legacyPath()}` } });
  const working = network(machine, change, undefined, { own, env: { PATH: legacyPath() } });
  const failed = await broken.call("ADD", c1);
  expect(failed.json.msg).toBe("/run/broken/ip6tables-legacy-restore: exit status 3: no such luck");
  expect(await rules(machine)).toEqual([]);
  await working.add(c2);
  const before = await rules(machine);
  expect((await broken.call("ADD", c1)).code).toBe(1);
  expect(await rules(machine)).toEqual(before);
  await working.check(c2);
});

test("what somebody flushed is repaired, and what is right is left alone", async () => {
  for (const { name, options, env } of backends) {
    await using machine = await openMachine();
    const ingress = { policy: "isolated", bridge: "br0" };
    const spec = { ...options, network: "net", containerId: "ctr-1", ifName: "eth0", ingress, zone: "trusted" };
    const whole = {
      kind: "firewall",
      spec: { ...spec, addresses: ["10.20.0.1", "fd20::1"], adminChain: "CNI-ADMIN" },
    };
    await drive(machine, [{ verb: "apply", ...whole }], env);
    const before = await rules(machine);
    await drive(machine, [{ verb: "repair", ...whole }], env);
    expect({ name, rules: await rules(machine) }).toEqual({ name, rules: before });
    await machine.sh(
      "nft flush ruleset; iptables-legacy -F; iptables-legacy -X; ip6tables-legacy -F CNI-FORWARD || true",
    );
    const outcomes = await drive(machine, [{ verb: "verify", ...whole }, { verb: "repair", ...whole }, {
      verb: "verify",
      ...whole,
    }], env);
    expect(outcomes[0]).not.toEqual([]);
    expect({ name, left: outcomes[2] }).toEqual({ name, left: [] });
    expect((await rules(machine)).sort()).toEqual(before.sort());
  }
});

test("a container with version 4 alone leaves the tables of version 6 alone", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const { prevResult } = own(container);
  const net = network(machine, conf);
  await net.add(container, { conf: { prevResult: { ...prevResult, ips: prevResult.ips.slice(0, 1) } } });
  expect(await machine.sh("nft list tables")).toBe("table ip filter\n");
  await net.del(container);
});

/** By what packets of containers that end in 1 come in, or why that is not known; `ip` makes it. */
const links: Record<string, { ip: string; interfaces?: string[]; guarded?: string; says?: RegExp }> = {
  "the bridge that the host has a route to": {
    ip: "link add br0 up type bridge; address add 10.20.0.254/24 dev br0",
    guarded: "br0",
  },
  "a link upon the bridge": {
    ip: `link add br0 up type bridge
      link add br0.7 up type veth peer name p7; link set p7 up master br0; address add 10.20.0.254/24 dev br0.7`,
    guarded: "br0.7",
  },
  "the bridge of a port, where the host has a route elsewhere alone": {
    ip: `link add br0 up type bridge; link add vc1 master br0 type veth peer name eth0 netns c1
      link add up0 up type veth peer name p0; link set p0 up
      address add 192.0.2.1/24 dev up0; route add default via 192.0.2.2`,
    interfaces: ["vc1"],
    guarded: "br0",
  },
  "the container's own": { ip: "link add vc1 up type veth peer name eth0 netns c1", guarded: "vc1" },
  "none of the host, which has a default route": {
    ip: `link add up0 up type veth peer name p0; link set p0 up
      address add 192.0.2.1/24 dev up0; route add default via 192.0.2.2`,
    interfaces: [],
    says: /: no link of this host is known by which packets of 10\.20\.0\.1 and fd20::1 come and go$/,
  },
  "one that is part of another": {
    ip: `link add br0 up type bridge; link add br1 up type bridge
      link add br0.7 up type veth peer name p7; link set p7 up master br0
      address add 10.20.0.254/24 dev br0.7; link set br0.7 master br1`,
    says: /: br0\.7 is part of br1, so packets of 10\.20\.0\.1 and fd20::1 come in by br1$/,
  },
  "two at once": {
    ip: `link add br0 up type bridge
      link add br0.7 up type veth peer name p7; link set p7 up master br0; address add 10.20.0.254/24 dev br0.7
      address add fd20::ff/64 dev br0 nodad`,
    says: /: packets of 10\.20\.0\.1 and fd20::1 come and go by br0\.7 and br0$/,
  },
};

test.each(Object.entries(links))("a policy guards the link by which packets come in: %s", async (_, facts) => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh("ip -batch -", { stdin: facts.ip.replaceAll(";", "\n") });
  const { prevResult } = own(container);
  const outside = facts.interfaces?.map((name) => ({ name })) ?? prevResult.interfaces.slice(0, 2);
  const changed = { ...prevResult, interfaces: [...outside, prevResult.interfaces[2]] };
  for (const backend of ["iptables", "nftables"]) {
    const net = network(machine, { ...conf, backend, ingressPolicy: "isolated" }, undefined, {
      own: () => ({ prevResult: changed }),
    });
    const { code, json } = await net.call("ADD", container);
    if (facts.guarded === undefined) {
      expect([code, json.code, json.msg]).toEqual([1, 7, expect.stringMatching(facts.says!)]);
      expect(json.msg).toStartWith('"ingressPolicy": "isolated" has no effect: ');
      expect(await machine.sh("nft list ruleset")).toBe("");
      continue;
    }
    expect({ backend, code, msg: json.msg }).toEqual({ backend, code: 0, msg: undefined });
    const list = await machine.sh("nft list set inet patchbay_firewall guarded");
    expect(list).toContain(`elements = { "${facts.guarded}" }`);
    await net.check(container);
    // Without the ledger it is found again.
    await machine.sh("rm -r /run/patchbay");
    await net.check(container);
    await net.del(container);
    expect(await machine.sh("nft list tables inet")).toBe("");
  }
});

for (const isLinkGone of [false, true]) {
  test(`rules of iptables for a container's own link go with it, without a ledger, the link ${isLinkGone ? "gone" : "there"}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container("c1");
    for (const { env } of backends.slice(0, 2)) {
      await machine.sh("ip link add vc1 up type veth peer name eth0 netns c1");
      const { prevResult } = own(container), ofPair = { ...prevResult, interfaces: prevResult.interfaces.slice(1) };
      const net = network(machine, { ...conf, backend: "iptables", ingressPolicy: "isolated" }, undefined, {
        own: () => ({ prevResult: { ...ofPair, ips: ofPair.ips.map((ip) => ({ ...ip, interface: 1 })) } }),
        env,
      });
      await net.add(container);
      expect((await rules(machine)).filter((line) => line.includes("vc1"))).not.toEqual([]);
      await machine.sh("rm -r /run/patchbay");
      if (isLinkGone) await machine.sh("ip link del vc1");
      await net.del(container);
      expect((await rules(machine)).filter((line) => line.includes("vc1"))).toEqual([]);
      if (!isLinkGone) await machine.sh("ip link del vc1");
    }
  });
}

test("GC without ledgers removes the rules of iptables for a container's own link", async () => {
  await using machine = await openMachine();
  const [c1, c2] = [await machine.container(), await machine.container()];
  const ofPair = (container: Container) => {
    const { prevResult } = own(container);
    return { prevResult: { ...prevResult, interfaces: prevResult.interfaces.slice(1), ips: [] } };
  };
  const policy = { ...conf, cniVersion: "1.1.0", backend: "iptables", ingressPolicy: "same-bridge" };
  const net = network(machine, policy, undefined, { own: ofPair });
  for (const one of [c1, c2]) {
    await machine.sh(`ip link add v${one.name} up type veth peer name eth0 netns ${one.name}`);
    await net.add(one);
  }
  await machine.sh("rm -r /run/patchbay");
  await net.gc([c2]);
  const left = (await rules(machine)).join("\n");
  expect(left).not.toMatch(/\bvc1\b/);
  expect(left).toMatch(/-o vc2 .*-j DROP[^]*elements = \{ "vc2" \}/);
});

test("a container with version 4 alone is kept apart where there is no ip6tables", async () => {
  await using machine = await openHost();
  const container = await machine.container();
  await machine.sh(`mkdir /run/alone; cd /run/alone; ln -s /usr/sbin/xtables-legacy-multi .
    for tool in iptables iptables-save iptables-restore; do ln -s xtables-legacy-multi $tool; done`);
  const { prevResult } = own(container);
  const bin = patchbayPlugins(), policy = { ...conf, name: "net", backend: "iptables", ingressPolicy: "isolated" };
  const result = { ...prevResult, ips: prevResult.ips.slice(0, 1) };
  const must = async (command: string) => {
    const call = { plugin: "firewall", command, container, conf: { ...policy, prevResult: result } };
    const alone = ["env", "PATH=/run/alone", `${bin}/firewall`];
    const { code, stdout } = await machine.run(alone, { stdin: stdinOf(call), env: environmentOf(bin, call) });
    expect({ command, code, stdout: code === 0 ? "" : stdout }).toEqual({ command, code: 0, stdout: "" });
  };
  await must("ADD");
  await must("CHECK");
  expect(await machine.sh("iptables-legacy-save")).toContain("-A CNI-ISOLATION-STAGE-2 -o br0 ");
  // In both families.
  expect(await machine.sh("nft list set inet patchbay_firewall guarded")).toContain('elements = { "br0" }');
  await must("DEL");
  expect(await machine.sh("nft list tables inet")).toBe("");
});

const bridged = (name: string) => ({
  prevResult: { ...own({ name: "c1", netnsPath: "/x" }).prevResult, interfaces: [{ name }] },
});
const refused: Record<string, { change: Record<string, unknown>; says: RegExp }> = {
  "a bridge of two words": { change: { ingressPolicy: "isolated", ...bridged("br0 -j") }, says: /"br0 -j"/ },
  "a bridge of two lines": {
    change: { ingressPolicy: "isolated", ...bridged("br0\n-F") },
    says: /cannot stand in a rule/,
  },
  "an admin chain that is ours": { change: { iptablesAdminChainName: "CNI-FORWARD" }, says: /has another meaning/ },
  "an admin chain that is a number": { change: { iptablesAdminChainName: 7 }, says: /iptablesAdminChainName.*7/ },
  "no prevResult": { change: { prevResult: undefined }, says: /missing prevResult from earlier plugin/ },
};

test("what is wrong is refused with code 7, and nothing is changed", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  for (const backend of ["iptables", "nftables"]) {
    const net = network(machine, { ...conf, backend }, undefined, { own });
    for (const [name, { change, says }] of Object.entries(refused)) {
      const { code, json } = await net.call("ADD", container, { conf: change });
      expect({ name, code, error: json.code, msg: json.msg }).toEqual({
        name,
        code: 1,
        error: 7,
        msg: expect.stringMatching(says),
      });
      const checked = { ...own(container), ...change };
      expect([name, (await net.call("CHECK", container, { conf: checked })).json.code]).toEqual([name, 7]);
      await net.del(container, { conf: change });
    }
  }
  expect(await machine.sh("nft list ruleset; find /run -path /run/netns -prune -o -type f ! -name 'serve~*' -print"))
    .toBe("");
});

test("STATUS: 50 where firewalld is asked for and does not run, and what is configured is looked at", async () => {
  await using machine = await openMachine();
  const status = async (change: Record<string, unknown>, env?: Record<string, string>) => {
    const net = network(machine, { ...conf, cniVersion: "1.1.0", ...change });
    const { code, json } = await net.call("STATUS", undefined, { env });
    return code === 0 ? 0 : json.code;
  };
  expect(await status({})).toBe(0);
  expect(await status({ backend: "nftables" })).toBe(0);
  expect(await machine.sh("nft list ruleset")).toBe("");
  expect(await status({ backend: "firewalld" })).toBe(50);
  expect(await status({ ingressPolicy: "closed" })).toBe(7);
  expect(await status({}, { PATH: legacyPath() })).toBe(0);
  await machine.sh(
    "mkdir /run/alone; cd /run/alone; ln -s /usr/sbin/xtables-legacy-multi .; ln -s xtables-legacy-multi iptables",
  );
  const call = { plugin: "firewall", command: "STATUS", conf: { ...conf, cniVersion: "1.1.0", name: "net" } };
  const bin = patchbayPlugins(), alone = ["env", "PATH=/run/alone", `${bin}/firewall`];
  const { stdout } = await machine.run(alone, { stdin: stdinOf(call), env: environmentOf(bin, call) });
  expect(JSON.parse(stdout)).toMatchObject({
    code: 50,
    msg: expect.stringContaining("iptables-save is not in PATH"),
  });
});
