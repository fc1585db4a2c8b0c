/** The source MAC check: its elements and their owners, real frames, and the reference plugin's rules. */
import { expect, test } from "bun:test";
import { BROADCAST, frame } from "../../support/frames.ts";
import { lacks } from "../../support/kernel-features.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";
import { ping } from "../../support/traffic.ts";

// IEEE 802
const FOR_EXPERIMENTS = 0x88b5;

const it = test.skipIf(lacks("nftables bridge family"));

function specOf(number: number, change: Record<string, unknown> = {}) {
  return {
    containerId: `ctr-${number}`,
    ifName: "eth0",
    hostVeth: `veth${number}`,
    mac: `02:00:00:00:00:0${number}`,
    ...change,
  };
}

const step = (verb: Step["verb"]) => (spec: unknown): Step => ({ verb, kind: "mac-spoof-check", spec });
const apply = step("apply"), verify = step("verify"), repair = step("repair"), remove = step("remove");

async function ruleset(machine: Machine): Promise<string> {
  return (await machine.sh("nft list ruleset")).replace(/packets \d+ bytes \d+/g, "");
}

it("what was applied is verified, and the last to be removed takes the table along", async () => {
  await using machine = await openMachine();
  const [one, two] = [specOf(1), specOf(2)];
  expect(await drive(machine, [apply(one), apply(two), verify(one), verify(two)])).toEqual([
    "applied",
    "applied",
    [],
    [],
  ]);
  // nft can read its own listing.
  const before = await ruleset(machine);
  await machine.sh("nft list ruleset > /run/rules; nft flush ruleset; nft -f /run/rules");
  expect(await ruleset(machine)).toBe(before);
  expect(await drive(machine, [remove(one), remove(one), verify(one), verify(two)])).toEqual(["removed", "removed", [
    "veth1 is not in map guarded of table bridge patchbay_macspoofchk",
    "veth1 with 02:00:00:00:00:01 is not in set allowed of table bridge patchbay_macspoofchk",
  ], []]);
  expect(await drive(machine, [remove(two)])).toEqual(["removed"]);
  expect(await ruleset(machine)).toBe("");
});

it("neither the link's name nor its MAC is needed to remove it", async () => {
  await using machine = await openMachine();
  const long = specOf(3, { containerId: "c".repeat(120) });
  await drive(machine, [apply(specOf(1)), apply(specOf(2)), apply(long)]);
  const unknown = { hostVeth: "", mac: "" };
  await drive(machine, [remove({ ...specOf(1), ...unknown }), remove({ ...long, ...unknown })]);
  expect(await drive(machine, [verify(specOf(2))])).toEqual([[]]);
  const text = await ruleset(machine);
  expect(text).not.toMatch(/veth1|veth3/);
  await drive(machine, [remove({ ...specOf(2), mac: "02:00:00:00:00:77" })]);
  expect(await ruleset(machine)).toBe("");
});

it("a link's name goes over to its next owner, with the next one's MAC alone", async () => {
  await using machine = await openMachine();
  const before = specOf(1), after = specOf(1, { containerId: "next", mac: "02:00:00:00:00:99" });
  expect(
    await drive(machine, [
      apply(before),
      apply(specOf(2)),
      apply(after),
      apply(after),
      verify(after),
      remove(before),
    ]),
  )
    .toEqual(["applied", "applied", "applied", "applied", [], "removed"]);
  expect(await drive(machine, [verify(after), verify(specOf(2))])).toEqual([[], []]);
  expect(await ruleset(machine)).not.toContain("02:00:00:00:00:01");
});

it("GC removes what guards links that are no more", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add veth2 type veth peer name other");
  const sweep: Step = { verb: "sweep", kind: "mac-spoof-check", network: "net", valid: [] };
  await drive(machine, [apply(specOf(1)), apply(specOf(2)), apply(specOf(3))]);
  expect(await drive(machine, [sweep, verify(specOf(2))])).toEqual(["swept", []]);
  expect(await ruleset(machine)).not.toMatch(/veth1|veth3/);
  await machine.sh("ip link del veth2");
  await drive(machine, [sweep, sweep]);
  expect(await ruleset(machine)).toBe("");
});

it("rules that somebody altered are told", async () => {
  await using machine = await openMachine();
  await drive(machine, [apply(specOf(1))]);
  await machine.sh("nft flush chain bridge patchbay_macspoofchk prerouting");
  expect(await drive(machine, [verify(specOf(1))])).toEqual([
    ["chain prerouting of table bridge patchbay_macspoofchk has other rules than it should"],
  ]);
});

it("what others removed is put back, and what is right stays", async () => {
  await using machine = await openMachine();
  const [one, two] = [specOf(1), specOf(2)];
  await drive(machine, [apply(one), apply(two)]);
  const before = await ruleset(machine);
  const lines = (text: string) => text.split("\n").map((line) => line.trim()).sort();
  const table = "bridge patchbay_macspoofchk";
  const breakages = [
    "nft flush ruleset",
    `nft flush chain ${table} prerouting`,
    `nft flush set ${table} allowed`,
    `nft flush map ${table} guarded`,
    `nft flush chain ${table} prerouting; nft flush map ${table} guarded; nft flush set ${table} allowed`,
  ];
  for (const breakage of breakages) {
    await machine.sh(breakage);
    expect(await drive(machine, [repair(one), repair(two), verify(one), verify(two)]))
      .toEqual(["repaired", "repaired", [], []]);
    expect(lines(await ruleset(machine))).toEqual(lines(before));
  }
  await drive(machine, [remove(one), remove(two)]);
  expect(await ruleset(machine)).toBe("");
});

it("the reference plugin's chains count as the check, and are removed with it", async () => {
  await using machine = await openMachine();
  const referenceRules = (id: string) => `
    nft 'add chain bridge nat cni-br-iface-${id}; add chain bridge nat cni-br-iface-${id}-mac'
    nft 'add rule bridge nat PREROUTING iifname "v-${id}" jump cni-br-iface-${id} comment "macspoofchk-${id}"'
    nft 'add rule bridge nat cni-br-iface-${id} jump cni-br-iface-${id}-mac comment "macspoofchk-${id}"'
    nft 'add rule bridge nat cni-br-iface-${id}-mac ether saddr 02:00:00:00:00:01 return comment "macspoofchk-${id}"'
    nft 'add rule bridge nat cni-br-iface-${id}-mac drop comment "macspoofchk-${id}"'`;
  await machine.sh(`
    nft 'add table bridge nat; add chain bridge nat PREROUTING { type filter hook prerouting priority -300; }'
    ${referenceRules("ctr-1-eth0")}
    ${referenceRules("ctr-2-eth0")}`);
  const unknown = { hostVeth: "", mac: "" };
  expect(await drive(machine, [verify(specOf(1)), remove({ ...specOf(1), ...unknown })])).toEqual([[], "removed"]);
  const left = await ruleset(machine);
  expect(left).not.toContain("ctr-1-eth0");
  expect(left.match(/ctr-2-eth0/g)!.length).toBeGreaterThanOrEqual(7);
  // One that was torn down half-way.
  await machine.sh("nft flush chain bridge nat PREROUTING; nft flush chain bridge nat cni-br-iface-ctr-2-eth0");
  await drive(machine, [remove(specOf(2))]);
  expect(await ruleset(machine)).not.toContain("ctr-2-eth0");
});

it("frames with another source MAC do not come through, and others' frames do", async () => {
  await using machine = await openMachine();
  for (const number of [1, 2]) {
    const container = await machine.container(`c${number}`);
    await machine.sh(`
      ip link add br0 type bridge 2> /dev/null && ip link set br0 up && ip address add 10.20.0.254/24 dev br0 || true
      ip link add veth${number} type veth peer name eth0 address 02:00:00:00:00:0${number} netns c${number}
      ip link set veth${number} master br0 up
      ip -n c${number} address add 10.20.0.${number}/24 dev eth0; ip -n c${number} link set eth0 up`);
    await drive(machine, [apply(specOf(number))]);
    expect(await ping(machine, container, "10.20.0.254")).toBe(true);
  }
  // A frame that no program on the container's link would send: a raw socket may claim any source.
  const send = (source: string) =>
    machine.sh(`
      ip netns exec c1 ${process.execPath} ${import.meta.dir}/../../support/send-frame.ts eth0 ${
      frame(BROADCAST, source, FOR_EXPERIMENTS)
    }`);
  await machine.sh(`
    nft add table bridge seen
    nft 'add chain bridge seen c { type filter hook prerouting priority 0; }'
    nft add rule bridge seen c ether type 0x88b5 ether saddr 02:00:00:00:00:01 counter comment right
    nft add rule bridge seen c ether type 0x88b5 counter comment any`);
  await send("02:00:00:00:00:02");
  await send("02:00:00:00:00:66");
  await send("02:00:00:00:00:01");
  const listing = await machine.sh("nft list table bridge seen; nft list counters table bridge patchbay_macspoofchk");
  expect(listing).toMatch(/packets 1 bytes \d+ comment "right"/);
  expect(listing).toMatch(/packets 1 bytes \d+ comment "any"/);
  expect(listing).toMatch(/counter spoofed \{\s+packets 2 /);
});
