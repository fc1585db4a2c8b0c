/**
 * What masquerade writes and removes, compared with what iptables and the reference plugins write.
 *
 * Longer than 300 lines: the same steps run for each backend, beside the rules of other programs.
 */
import { expect, test } from "bun:test";
import { masqueradeChain } from "../../../src/resources/packets/masquerade/iptables.ts";
import { legacyPath } from "../../support/legacy-iptables.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";

type Change = Record<string, unknown>;
const backends = ["nftables", "iptables"] as const;

function specOf(backend: string, number: number, change: Change = {}) {
  const addresses = [`10.88.0.${number}/16`, `fd00:10:88::${number}/64`];
  return { backend, network: "mynet", containerId: `ctr-${number}`, ifName: "eth0", addresses, ...change };
}

function step(verb: Step["verb"], spec: unknown): Step {
  return { verb, kind: "masquerade", spec };
}

const apply = (spec: unknown) => step("apply", spec);
const verify = (spec: unknown) => step("verify", spec);
const remove = (spec: unknown) => step("remove", spec);

/** The rule set without counts, and without the empty frame that iptables leaves as well. */
async function ruleset(machine: Machine): Promise<string> {
  const text = await machine.sh("nft list ruleset");
  return text.replace(/^# Warning.*\n/gm, "").replace(/packets \d+ bytes \d+/g, "packets 0 bytes 0")
    .replace(
      /table ip6? nat \{\n(\tchain \w+ \{\n\t\ttype nat hook \w+ priority \w+; policy accept;\n\t\}\n\n?)*\}\n/g,
      "",
    );
}

/** What the reference plugins run for a container. */
function asIptables(number: number, family: 4 | 6): string {
  const tool = family === 4 ? "iptables" : "ip6tables";
  const [address, bits, multicast] = family === 4
    ? [`10.88.0.${number}`, 16, "224.0.0.0/4"]
    : [`fd00:10:88::${number}`, 64, "ff00::/8"];
  const chain = masqueradeChain({ network: "mynet", containerId: `ctr-${number}` });
  const comment = `-m comment --comment 'name: "mynet" id: "ctr-${number}"'`;
  return `
    ${tool} -t nat -N ${chain}
    ${tool} -t nat -A ${chain} -d ${address}/${bits} -j ACCEPT ${comment}
    ${tool} -t nat -A ${chain} ! -d ${multicast} -j MASQUERADE ${comment}
    ${tool} -t nat -A POSTROUTING -s ${address} -j ${chain} ${comment}`;
}

/** Every rule as the kernel keeps it, whatever its place and handle. */
async function rulesInKernel(machine: Machine): Promise<string[]> {
  const text = await machine.sh("nft --debug=netlink list ruleset | sed -n '1,/^table/p'");
  return text.split("\n\n").map((rule) => rule.replace(/^(ip6? nat \S+).*/, "$1")).sort();
}

const withoutTimes = (text: string) => text.replace(/^#.*\n/gm, "");

for (const backend of backends) {
  test(`${backend}: what was applied is verified, and removed with nothing left`, async () => {
    await using machine = await openMachine();
    const one = specOf(backend, 1), two = specOf(backend, 2);
    expect(await drive(machine, [apply(one), apply(two), verify(one), verify(two)])).toEqual([
      "applied",
      "applied",
      [],
      [],
    ]);
    expect(await drive(machine, [remove(one), verify(two), remove(one)])).toEqual(["removed", [], "removed"]);
    const [missing] = await drive(machine, [verify(one)]) as [string[]];
    expect(missing.length).toBeGreaterThanOrEqual(2);
    expect(missing.join()).toMatch(/10\.88\.0\.1\b.*fd00:10:88::1\b/);
    expect(await ruleset(machine)).not.toBe("");
    expect(await drive(machine, [remove(two)])).toEqual(["removed"]);
    expect(await ruleset(machine)).toBe("");
  });

  test(`${backend}: applying twice changes nothing, and mends what is missing`, async () => {
    await using machine = await openMachine();
    const spec = specOf(backend, 1);
    await drive(machine, [apply(spec)]);
    const before = await ruleset(machine);
    expect(await drive(machine, [apply(spec), verify(spec)])).toEqual(["applied", []]);
    expect(await ruleset(machine)).toBe(before);
    const chain = backend === "nftables" ? "inet patchbay_masquerade postrouting" : "ip nat POSTROUTING";
    await machine.sh(`nft flush chain ${chain}`);
    const [missing] = await drive(machine, [verify(spec)]) as [string[]];
    expect(missing).not.toEqual([]);
    expect(await drive(machine, [apply(spec), verify(spec), remove(spec)])).toEqual(["applied", [], "removed"]);
    expect(await ruleset(machine)).toBe("");
  });

  test(`${backend}: addresses are not needed to remove it when it is restated`, async () => {
    await using machine = await openMachine();
    const restated = (step: Step): Step => ({ ...step, isRestated: true }), unknown = { addresses: [] };
    await drive(machine, [apply(specOf(backend, 1)), apply(specOf(backend, 2))]);
    // Whatever the configuration says today.
    const other = backend === "nftables" ? "iptables" : "nftables";
    expect(await drive(machine, [restated(remove(specOf(other, 1, unknown))), verify(specOf(backend, 2))])).toEqual([
      "removed",
      [],
    ]);
    await drive(machine, [restated(remove(specOf(other, 2, unknown)))]);
    expect(await ruleset(machine)).toBe("");
  });

  test(`${backend}: any address can be masqueraded`, async () => {
    await using machine = await openMachine();
    const specs = [
      "10.0.0.1/32",
      "10.0.0.2/32",
      "10.1.2.3/21",
      "fd00::1/128",
      "fd00::2/61",
      "10.9.9.9/0",
      "fd01::1/0",
    ]
      .map((address, index) => specOf(backend, index, { addresses: [address] }));
    const both = specOf(backend, 50, { addresses: ["10.5.0.1/24", "10.5.0.2/24", "10.6.0.1/24"] });
    const all = [...specs, both];
    expect(await drive(machine, all.map(apply))).toEqual(all.map(() => "applied"));
    expect(await drive(machine, all.map(verify))).toEqual(all.map(() => []));
    // nft can read its own listing.
    const listed = await machine.sh("nft list ruleset");
    if (backend === "nftables") {
      await machine.sh("nft list ruleset > /run/rules; nft flush ruleset; nft -f /run/rules");
      expect(await machine.sh("nft list ruleset")).toBe(listed);
    }
    expect(await drive(machine, all.map(remove))).toEqual(all.map(() => "removed"));
    expect(await ruleset(machine)).toBe("");
  });

  test(`${backend}: GC removes what belongs to nobody in the network, and nothing else`, async () => {
    await using machine = await openMachine();
    const stays = [specOf(backend, 1), specOf(backend, 2, { network: "other" })];
    const goes = [specOf(backend, 3), specOf(backend, 4, { containerId: "x".repeat(70) })];
    await drive(machine, [...stays, ...goes].map(apply));
    const sweep: Step = { verb: "sweep", kind: "masquerade", network: "mynet", valid: ["ctr-1"] };
    expect(await drive(machine, [sweep, ...stays.map(verify)])).toEqual(["swept", [], []]);
    await drive(machine, stays.map(remove));
    expect(await ruleset(machine)).toBe("");
  });

  test(`${backend}: many at once leave nothing and disturb nobody`, async () => {
    await using machine = await openMachine();
    const stays = specOf(backend, 1);
    await drive(machine, [apply(stays)]);
    const turns = Array.from({ length: 12 }, (_, process) => {
      const spec = specOf(backend, 10 + process);
      return drive(machine, [apply(spec), verify(spec), remove(spec), apply(spec), remove(spec)]);
    });
    for (const outcomes of await Promise.all(turns)) {
      expect(outcomes).toEqual(["applied", [], "removed", "applied", "removed"]);
    }
    expect(await drive(machine, [verify(stays), remove(stays)])).toEqual([[], "removed"]);
    expect(await ruleset(machine)).toBe("");
    // The same for the first and the last of a subnet, who make and remove what they share.
    const alone = Array.from({ length: 6 }, (_, process) => {
      const spec = specOf(backend, 30 + process);
      return drive(machine, [apply(spec), remove(spec), apply(spec), remove(spec), apply(spec), remove(spec)]);
    });
    for (const outcomes of await Promise.all(alone)) {
      expect(outcomes).toEqual(["applied", "removed", "applied", "removed", "applied", "removed"]);
    }
    expect(await ruleset(machine)).toBe("");
  });
}

test("nftables: an element under another counter comes back under its own, by repair and by the next ADD", async () => {
  await using machine = await openMachine();
  const one = specOf("nftables", 1), other = specOf("nftables", 2);
  expect(await drive(machine, [apply(one), apply(other)])).toEqual(["applied", "applied"]);
  for (const mend of [step("repair", one), apply(one)]) {
    await machine.sh(`
      T="inet patchbay_masquerade"; M="from_10.88.0.0/16"
      nft add counter $T other; nft delete element $T $M '{ 10.88.0.1 }'
      nft add element $T $M '{ 10.88.0.1 comment "id: ctr-1, if: eth0, net: mynet" : "other" }'`);
    expect(await drive(machine, [verify(one)])).toEqual([[expect.stringContaining('is under "other"')]]);
    await drive(machine, [mend]);
    expect(await drive(machine, [verify(one), verify(other)])).toEqual([[], []]);
  }
  expect(await drive(machine, [remove(one), remove(other)])).toEqual(["removed", "removed"]);
});

test("nftables: an address goes over to its next owner, and is not taken away by the one before", async () => {
  await using machine = await openMachine();
  const [before, after] = [specOf("nftables", 1), specOf("nftables", 1, { containerId: "next" })];
  expect(await drive(machine, [apply(before), apply(after), verify(after)])).toEqual(["applied", "applied", []]);
  expect(await drive(machine, [remove(before), verify(after), verify(before)])).toEqual(["removed", [], [
    expect.stringContaining(
      '10.88.0.1 (map from_10.88.0.0/16 of table inet patchbay_masquerade) belongs to "id: next,',
    ),
    expect.stringContaining('belongs to "id: next, if: eth0, net: mynet"'),
  ]]);
  await drive(machine, [remove(after)]);
  expect(await ruleset(machine)).toBe("");
});

test("nftables: a subnet goes with its last address while others stay", async () => {
  await using machine = await openMachine();
  const small = specOf("nftables", 1, { addresses: ["10.1.0.1/24"] }), large = specOf("nftables", 2);
  await drive(machine, [apply(small), apply(large), remove(small)]);
  expect(await machine.sh("nft list ruleset")).not.toContain("10.1.0.0");
  expect(await drive(machine, [verify(large)])).toEqual([[]]);
});

test("nftables: rules of somebody else in our table stay", async () => {
  await using machine = await openMachine();
  await drive(machine, [apply(specOf("nftables", 1))]);
  await machine.sh(`
    nft add chain inet patchbay_masquerade theirs
    nft add rule inet patchbay_masquerade theirs ip saddr @from_10.88.0.0/16 accept || true
    nft add rule inet patchbay_masquerade postrouting ip saddr 192.0.2.1 accept`);
  expect(await drive(machine, [remove(specOf("nftables", 1))])).toEqual(["removed"]);
  const left = await machine.sh("nft list ruleset");
  expect(left).toContain("192.0.2.1 accept");
  expect(left).not.toContain("10.88.0.1");
});

test("iptables: the same rules to the byte as the reference plugins' commands write", async () => {
  await using ours = await openMachine();
  await using theirs = await openMachine();
  for (const number of [1, 2]) {
    await theirs.sh(asIptables(number, 4) + asIptables(number, 6));
    await drive(ours, [apply(specOf("iptables", number))]);
  }
  const saved = "iptables-save -t nat; ip6tables-save -t nat";
  expect(withoutTimes(await ours.sh(saved))).toBe(withoutTimes(await theirs.sh(saved)));
  expect(await rulesInKernel(ours)).toEqual(await rulesInKernel(theirs));
  expect((await rulesInKernel(ours)).length).toBeGreaterThanOrEqual(12);
});

test("iptables: the program finds and deletes our rules", async () => {
  await using machine = await openMachine();
  await drive(machine, [apply(specOf("iptables", 1))]);
  for (const family of [4, 6] as const) {
    await machine.sh(asIptables(1, family).replaceAll(" -A ", " -C ").replace(/.* -N .*/, ""));
    const commands = asIptables(1, family).replaceAll(" -A ", " -D ").trim().split("\n");
    await machine.sh([...commands.slice(1), commands[0]!.replace(" -N ", " -X ")].join("\n"));
  }
  expect(await ruleset(machine)).toBe("");
});

const foreign: Record<string, string> = {
  "as they are": "",
  "with others between":
    "iptables -t nat -I POSTROUTING -s 192.0.2.1 -j ACCEPT; iptables -t nat -A POSTROUTING -s 192.0.2.2 -j ACCEPT",
  "restored from a file":
    "iptables-save > /run/saved; iptables -t nat -F; iptables -t nat -X; iptables-restore /run/saved",
  "without their jump": "iptables -t nat -F POSTROUTING",
  "with an empty chain": `iptables -t nat -F ${masqueradeChain({ network: "mynet", containerId: "ctr-1" })}`,
  "with a jump twice": asIptables(1, 4).split("\n").pop()!,
  "with the jump of a plugin before 0.8": `
    iptables -t nat -F POSTROUTING
    iptables -t nat -A POSTROUTING -s 10.88.0.1/16 -j ${masqueradeChain({ network: "mynet", containerId: "ctr-1" })}`,
};

for (const [how, script] of Object.entries(foreign)) {
  for (const addresses of [["10.88.0.1/16", "fd00:10:88::1/64"], []]) {
    test(`iptables: rules of others are removed, ${how}, ${addresses.length ? "by" : "without"} address`, async () => {
      await using machine = await openMachine();
      await machine.sh(asIptables(2, 4) + asIptables(1, 4) + asIptables(1, 6) + "\n" + script);
      expect(await drive(machine, [remove(specOf("iptables", 1, { addresses }))])).toEqual(["removed"]);
      const left = await machine.sh("iptables-save -t nat; ip6tables-save -t nat");
      expect(left).not.toContain(masqueradeChain({ network: "mynet", containerId: "ctr-1" }));
      expect(left.includes(`-j ${masqueradeChain({ network: "mynet", containerId: "ctr-2" })}`))
        .toBe(!script.includes("-F POSTROUTING"));
    });
  }
}

test("iptables: a rule where the jump would be looked for first is not taken for it", async () => {
  await using machine = await openMachine();
  const [chain, ...rest] = asIptables(1, 4).trim().split("\n"), jump = rest.pop();
  const stranger = (number: number) => `iptables -t nat -A POSTROUTING -s 192.0.2.${number} -j ACCEPT`;
  // Rules have consecutive numbers, once POSTROUTING is there: the second one's follows that of the chain's last.
  await machine.sh([stranger(1), chain, ...rest, stranger(2), jump].join("\n"));
  expect(await drive(machine, [remove(specOf("iptables", 1))])).toEqual(["removed"]);
  const left = await machine.sh("iptables-save -t nat");
  for (const number of [1, 2]) expect(left).toContain(`-A POSTROUTING -s 192.0.2.${number}/32 -j ACCEPT`);
  expect(left).not.toContain("CNI-");
});

test("iptables: two interfaces of a container share a chain, and the last one takes it along", async () => {
  await using machine = await openMachine();
  const first = specOf("iptables", 1),
    second = specOf("iptables", 1, { ifName: "eth1", addresses: ["10.99.0.7/24"] });
  expect(await drive(machine, [apply(first), apply(second), verify(first), verify(second)])).toEqual([
    "applied",
    "applied",
    [],
    [],
  ]);
  expect(await drive(machine, [remove(first), verify(second), remove(second)])).toEqual(["removed", [], "removed"]);
  expect(await ruleset(machine)).toBe("");
});

test("iptables: a chain that somebody else jumps to as well stays for them", async () => {
  await using machine = await openMachine();
  const chain = masqueradeChain({ network: "mynet", containerId: "ctr-1" });
  await drive(machine, [apply(specOf("iptables", 1))]);
  await machine.sh(`iptables -t nat -N THEIRS; iptables -t nat -A THEIRS -j ${chain}`);
  expect(await drive(machine, [remove(specOf("iptables", 1))])).toEqual(["removed"]);
  expect(await machine.sh("iptables-save -t nat")).not.toMatch(/-A POSTROUTING/);
});

test("what the reference plugins' nftables backend left is recognised, removed and collected", async () => {
  await using machine = await openMachine();
  const hash = (text: string) => new Bun.CryptoHasher("sha512").update(text).digest("hex").slice(0, 16);
  const rule = (network: string, container: string) =>
    `ip saddr == 10.88.0.1 ip daddr != 10.88.0.0/16 masquerade comment "${
      `${hash(network)}-${hash(`eth0:${container}`)}, net: ${network}, if: eth0, id: ${container}`.slice(0, 127)
    }"`;
  await machine.sh(`cat > /run/rules <<'EOF'
table inet cni_plugins_masquerade {
  chain masq_checks {
    ${rule("mynet", "ctr-1")}
    ${rule("mynet", "ctr-2")}
    ${rule("mynet", "ctr-3")}
    ${rule("mynet", "f".repeat(70))}
    ${rule("other", "ctr-2")}
  }
}
EOF
nft -f /run/rules`);
  const left = async () =>
    (await machine.sh("nft list ruleset")).match(/net: \w+, if: eth0, id: [\w-]+/g)!
      .map((owner) => owner.replace(", if: eth0, id:", "").replace("net: ", "").slice(0, 12));
  const spec = specOf("iptables", 1, { addresses: ["10.88.0.1/16"] });
  expect(await drive(machine, [{ ...verify(spec), isRestated: true }])).toEqual([[]]);
  expect(await drive(machine, [{ ...remove(spec), isRestated: true }])).toEqual(["removed"]);
  expect(await left()).toEqual(["mynet ctr-2", "mynet ctr-3", "mynet ffffff", "other ctr-2"]);
  await drive(machine, [{ verb: "sweep", kind: "masquerade", network: "mynet", valid: ["ctr-3"] }]);
  // An owner that the comment had no room for cannot be told from a valid one.
  expect(await left()).toEqual(["mynet ctr-3", "mynet ffffff", "other ctr-2"]);
});

test("on a host with iptables-legacy its tables are used", async () => {
  await using machine = await openMachine();
  const env = { PATH: legacyPath() };
  const saved = () => machine.sh("iptables-legacy-save -t nat; ip6tables-legacy-save -t nat").then(withoutTimes);
  const [one, two] = [specOf("iptables", 1), specOf("iptables", 2)];
  await drive(machine, [apply(two)], env);
  const before = await saved();
  expect(await drive(machine, [apply(one), verify(one), verify(two)], env)).toEqual(["applied", [], []]);
  // What the reference plugins' commands write there.
  await using theirs = await openMachine();
  await theirs.sh(
    `export PATH=${legacyPath()}` + [asIptables(2, 4), asIptables(2, 6), asIptables(1, 4), asIptables(1, 6)].join(""),
  );
  const theirSaved = withoutTimes(await theirs.sh("iptables-legacy-save -t nat; ip6tables-legacy-save -t nat"));
  expect((await saved()).split("\n").sort()).toEqual(theirSaved.split("\n").sort());
  expect(await drive(machine, [remove(one), verify(two), remove(one)], env)).toEqual(["removed", [], "removed"]);
  expect(await saved()).toBe(before);
  expect(await machine.sh("nft list ruleset")).toBe("");
  await drive(
    machine,
    [apply(one), { verb: "sweep", kind: "masquerade", network: "mynet", valid: ["ctr-2"] }],
    env,
  );
  expect(await saved()).toBe(before);
  // Restated where iptables has become the other one meanwhile.
  await drive(machine, [{ ...remove(specOf("nftables", 2, { addresses: [] })), isRestated: true }], {
    PATH: process.env.PATH!,
  });
  expect(await saved()).not.toContain("CNI-");
});

/** A router with a way out, on which packets can be sent from a container's address as if they came from it. */
async function router(): Promise<Machine> {
  const machine = await openMachine();
  await machine.container("out");
  await machine.sh(`
    ip link add up0 type veth peer name up1 netns out
    ip address add 203.0.113.1/24 dev up0; ip -6 address add 2001:db8:ff::1/64 dev up0 nodad
    ip address add 10.88.0.1/32 dev up0; ip -6 address add fd00:10:88::1/128 dev up0 nodad
    ip link set up0 up; ip -n out link set up1 up
    ip -n out address add 203.0.113.2/24 dev up1; ip -6 -n out address add 2001:db8:ff::2/64 dev up1 nodad
    ip -n out address add 10.88.0.9/32 dev up1; ip -6 -n out address add fd00:10:88::9/128 dev up1 nodad
    ip route add 10.88.0.9 dev up0; ip -6 route add fd00:10:88::9 dev up0
    ip route add 239.1.2.3 dev up0; ip -6 route add multicast ff05::123 dev up0 table local
    ip netns exec out nft 'table inet seen { chain c { type filter hook prerouting priority -400;
      ip saddr 10.88.0.1 ip daddr 203.0.113.2 counter comment "outside 4, own address"
      ip saddr 203.0.113.1 ip daddr 203.0.113.2 counter comment "outside 4, masqueraded"
      ip6 saddr fd00:10:88::1 ip6 daddr 2001:db8:ff::2 counter comment "outside 6, own address"
      ip6 saddr 2001:db8:ff::1 ip6 daddr 2001:db8:ff::2 icmpv6 type echo-request counter comment "outside 6, masqueraded"
      ip saddr 10.88.0.1 ip daddr 10.88.0.9 counter comment "subnet 4, own address"
      ip6 saddr fd00:10:88::1 ip6 daddr fd00:10:88::9 icmpv6 type echo-request counter comment "subnet 6, own address"
      ip saddr 10.88.0.1 ip daddr 239.1.2.3 counter comment "multicast 4, own address"
      ip6 saddr fd00:10:88::1 ip6 daddr ff05::123 counter comment "multicast 6, own address"
    }; }'`);
  return machine;
}

/** Sends to each destination from the container's address. Answers what came under which address. */
async function seen(machine: Machine): Promise<string[]> {
  await machine.sh(`
    ip netns exec out nft reset counters table inet seen > /dev/null
    for to in 203.0.113.2 10.88.0.9 239.1.2.3; do ping -c 1 -W 0.1 -I 10.88.0.1 $to > /dev/null || true; done
    for to in 2001:db8:ff::2 fd00:10:88::9 ff05::123; do ping -c 1 -W 0.1 -I fd00:10:88::1 $to > /dev/null || true; done`);
  const listing = await machine.sh("ip netns exec out nft list table inet seen");
  return [...listing.matchAll(/counter packets [1-9].* comment "(.*)"/g)].map(([, what]) => what!);
}

const ownAddress = [
  "outside 4, own address",
  "outside 6, own address",
  "subnet 4, own address",
  "subnet 6, own address",
  "multicast 4, own address",
  "multicast 6, own address",
];

for (const backend of backends) {
  test(`${backend}: packets are masqueraded outside the subnet, unless they are for many`, async () => {
    await using machine = await router();
    expect(await seen(machine)).toEqual(ownAddress);
    await using masqueraded = await router();
    const spec = specOf(backend, 1);
    await drive(masqueraded, [apply(spec), apply(specOf(backend, 2))]);
    expect(await seen(masqueraded)).toEqual([
      "outside 4, masqueraded",
      "outside 6, masqueraded",
      ...ownAddress.slice(2),
    ]);
  });

  test(`${backend}: packets of others, and after removal, keep their source`, async () => {
    await using machine = await router();
    await drive(machine, [apply(specOf(backend, 1)), apply(specOf(backend, 2)), remove(specOf(backend, 1))]);
    expect(await seen(machine)).toEqual(ownAddress);
  });
}
