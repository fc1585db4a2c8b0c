/**
 * Kernel features that not every kernel has, probed once per test file. Tests that need one skip without it:
 * `test.skipIf(lacks("bridge VLAN filtering"))`. They then run in the virtual machine.
 */
import { openMachine } from "./machine.ts";

const probes = {
  "bridge VLAN filtering": "ip link add probe type bridge vlan_filtering 1",
  "nftables bridge family":
    "nft 'table bridge probe { chain c { type filter hook prerouting priority -300; ether saddr 00:00:00:00:00:01 drop; }; }'",
  "isolated bridge ports":
    "ip link add br0 type bridge; ip link add v0 type veth peer name v1; ip link set v0 master br0; bridge link set dev v0 isolated on",
  "dummy links": "ip link add probe type dummy",
  "VLAN links": "ip link add p0 type veth peer name p1; ip link add link p0 name probe type vlan id 5",
  "macvlan links": "ip link add p0 type veth peer name p1; ip link add link p0 name probe type macvlan",
  "ipvlan links": "ip link add p0 type veth peer name p1; ip link add link p0 name probe type ipvlan",
  "VXLAN links": "ip link add probe type vxlan id 5 dstport 4789",
  "xfrm links": "ip link add probe type xfrm if_id 5",
  // Only the tests' virtual machine has network cards to give away; see test/vm/machine.ts.
  "network cards to spare": "grep -q ' tree=' /proc/cmdline",
  "VRF links": "ip link add probe type vrf table 10",
  "overlay file systems":
    "cd /run; mkdir files work; mount -t overlay overlay -o lowerdir=/opt,upperdir=files,workdir=work /opt",
  "Open vSwitch's datapath": "genl ctrl get name ovs_datapath",
  // It is older than Linux 6.5 (SO_PEERPIDFD).
  "no hold on who has connected": "! printf '6.5\\n%s\\n' \"$(uname -r)\" | sort -VC",
  "cgroups of version 2": "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
};

export type Feature = keyof typeof probes;

const missing = new Set<Feature>();
{
  await using machine = await openMachine();
  for (const [feature, script] of Object.entries(probes) as [Feature, string][]) {
    const { code, stderr } = await machine.run(["unshare", "--net", "sh", "-ec", script]);
    if (code === 0) continue;
    if (process.env.PATCHBAY_TEST_VM) throw new Error(`the virtual machine's kernel lacks ${feature}: ${stderr}`);
    missing.add(feature);
    console.warn(`SKIPPING what needs ${feature}: this kernel does not have it`);
  }
}

export function lacks(feature: Feature | undefined): boolean {
  return feature !== undefined && missing.has(feature);
}
