/** The virtual machine's kernel has the features that others lack. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { openMachine } from "../../support/machine.ts";

test.skipIf(lacks("bridge VLAN filtering"))("a bridge filters VLANs", async () => {
  await using machine = await openMachine();
  await machine.sh(
    "ip link add br0 type bridge vlan_filtering 1 vlan_default_pvid 0; bridge vlan add dev br0 vid 7 self",
  );
  expect(JSON.parse(await machine.sh("bridge -j vlan show"))).toEqual([{ ifname: "br0", vlans: [{ vlan: 7 }] }]);
});

test.skipIf(lacks("nftables bridge family"))("nftables has the bridge family", async () => {
  await using machine = await openMachine();
  const table = { family: "bridge", name: "probe" };
  await machine.sh("nft add table bridge probe");
  const { nftables } = JSON.parse(await machine.sh("nft -j list tables bridge"));
  expect(nftables[1].table).toMatchObject(table);
});

for (const kind of ["dummy", "VLAN", "macvlan", "ipvlan", "VRF"] as const) {
  const make = {
    dummy: "ip link add new type dummy",
    VLAN: "ip link add link parent name new type vlan id 5",
    macvlan: "ip link add link parent name new type macvlan mode bridge",
    ipvlan: "ip link add link parent name new type ipvlan mode l2",
    VRF: "ip link add new type vrf table 10",
  }[kind];
  test.skipIf(lacks(`${kind} links`))(`the kernel has ${kind} links, that come up`, async () => {
    await using machine = await openMachine();
    await machine.sh(
      `ip link add parent type veth peer name other; ip link set parent up; ip link set other up; ${make}`,
    );
    await machine.sh("ip link set new up");
    const [link] = JSON.parse(await machine.sh("ip -j -d link show new"));
    expect(link.linkinfo.info_kind).toBe(kind.toLowerCase());
    expect(link.flags).toContain("UP");
  });
}
