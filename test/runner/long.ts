/**
 * What `npm run test:long` runs beside `npm test`, which is to take ten minutes on two free processors. Together they
 * run everything.
 *
 * - Files that repeat what others show, at length: the short run leaves them out.
 * - Files with a long table of cases: the short run takes a share of them, the long run the rest (support/share.ts).
 * - Files a second time through a resident, with PATCHBAY_TEST_RESIDENT=1.
 * - Files with tests that this machine's kernel skips: the long run takes these to the virtual machine.
 */

/** Whole files. One with tests for the virtual machine is in its list, too. */
const aside = [
  // Each makes the whole run of `patchbay conformance` again: of other plugins than ours, or several times.
  "test/conformance/debian.test.ts",
  "test/conformance/ours.test.ts",
  "test/conformance/whole-runs.test.ts",
  "test/conformance/wrong-plugins.test.ts",
  // Three members of etcd, killed and cut off: cluster-stores/etcd-failures.test.ts has one.
  "test/cluster-stores/etcd-members.test.ts",
  // 220 MB for one message that etcd-failures.test.ts cannot have.
  "test/cluster-stores/etcd-slow-watch.test.ts",
  // A tree with faults is checked by every tool once more.
  "test/compile/check-of-faults.test.ts",
  // Builds the program twice more.
  "test/compile/build.test.ts",
  // Makes and checks the package for npm, again and again: frontends/library has the library's own tests.
  "test/frontends/library/package.test.ts",
  // Three thousand ADDs.
  "test/faults/many-in-a-pool.test.ts",
  // A death and a failure at each system call of the launcher.
  "test/frontends/resident/launcher-sweep.test.ts",
  // Deaths at each system call of a probe.
  "test/explain/live-killed.test.ts",
  // Deaths at each system call of a start.
  "test/frontends/resident/by-call-sweep.test.ts",
  // A thousand containers on ten machines, twice.
  "test/services/node/fleet.test.ts",
  // A day without a store, by hours; the short run has shorter silences.
  "test/services/node/attaching.test.ts",
  // A bad day of five agents.
  "test/services/node/busy.test.ts",
  // Deaths at each system call of an agent.
  "test/faults/node-kill-sweep.test.ts",
  // An engine that is started again and again.
  "test/frontends/resident/engine-restarts.test.ts",
  // containerd once more, by the protocol of kubelet.
  "test/real-engines/containerd-cri.test.ts",
  // Builds the API server of Kubernetes, ten minutes of two processors, where a run has not done so before.
  "test/cluster-stores/kubernetes-real.test.ts",
  // That every row of the benchmarks runs.
  "test/bench/pod-start.test.ts",
  "test/bench/run.test.ts",
  // Builds and checks what compile/new.test.ts has copied.
  "test/plugins/skeleton.test.ts",
  // Sends a packet for every cell of the page: the policies have theirs in kernel/firewall-packets.test.ts and others.
  "test/kernel/who-reaches-whom.test.ts",
  // The whole minute in which a node may object, in ten clusters.
  "test/frontends/cli/node-removal.test.ts",
  "test/services/dhcp/plugin/floods.test.ts",
  // It fetches VitePress, which nothing else needs.
  "test/docs/site.test.ts",
  "test/services/dhcp/plugin/storms.test.ts",
  "test/differential/turns.test.ts",
  // Packages of 55 MB, installed, upgraded and removed under engines.
  "test/release/debian-packages.test.ts",
  "test/release/rpm-packages.test.ts",
  // The whole release, twice.
  "test/release/release.test.ts",
  // How a directory is installed shows in install/install-again.test.ts.
  "test/release/image-engines.test.ts",
  // They fetch root directories of other hosts, 280 MB.
  "test/real-engines/podman-5.test.ts",
  "test/hosts/debian.test.ts",
  "test/hosts/musl.test.ts",
  "test/frontends/resident/soak.test.ts",
  // The unit tests once more, as the user nobody.
  "test/runner/unit.test.ts",
];

/** The tests of the virtual machine alone. */
const SUITES = "test/vm/suites/";

interface Part {
  file: string;
  /** A regular expression for the names of the tests; without it, all. */
  named?: string;
}

/** With the tests that are cases of the table, where the file has others. */
const inShares: readonly Part[] = [
  { file: "test/cluster/walks.test.ts" },
  { file: "test/differential/plugins.test.ts" },
  { file: "test/explain/dhcp.test.ts", named: "broken: " },
  { file: "test/explain/engines.test.ts" },
  { file: "test/explain/healthy.test.ts" },
  { file: "test/explain/open-vswitch.test.ts", named: "broken: " },
  { file: "test/explain/set-ups.test.ts" },
  { file: "test/faults/block-taken-away.test.ts" },
  { file: "test/faults/errno-sweep.test.ts" },
  { file: "test/faults/kill-sweep.test.ts" },
  { file: "test/faults/ovs-database.test.ts" },
  { file: "test/services/node/agent.test.ts" },
  { file: "test/frontends/netavark/firewall/firewalld.test.ts", named: "killed at any moment" },
  { file: "test/frontends/podman/clean-up.test.ts", named: "^teardown with" },
  { file: "test/kernel/bridge-removal.test.ts", named: "^DEL leaves nothing \\((iptables|nftables)\\)" },
  { file: "test/kernel/state-files.test.ts", named: "^/" },
  { file: "test/net/netfilter/kernel-agrees.test.ts" },
  // One engine, runtime and backend in the short run, the others here.
  { file: "test/real-engines/buildah.test.ts" },
  { file: "test/real-engines/containerd.test.ts", named: "user namespace" },
  { file: "test/real-engines/go-cni.test.ts" },
  { file: "test/real-engines/oci-runtimes.test.ts" },
  { file: "test/real-engines/podman.test.ts", named: "user namespace" },
];

/** Few of their tests are for the virtual machine. The run on this kernel only finds out which. */
const withOtherKernel = [
  "test/conformance/other-kernels.test.ts",
  "test/docs/examples.test.ts",
  "test/docs/recipes.test.ts",
  "test/explain/kinds-in-vm.test.ts",
  "test/explain/vlans-in-vm.test.ts",
  "test/kernel/altered.test.ts",
  "test/kernel/announcement.test.ts",
  "test/kernel/bridge-options.test.ts",
  "test/kernel/bridge-packets.test.ts",
  "test/kernel/eager-container.test.ts",
  "test/kernel/hidden-devices.test.ts",
  "test/kernel/hidden-links.test.ts",
  "test/kernel/hostile-container.test.ts",
  "test/kernel/internal-networks-vrf.test.ts",
  "test/kernel/isolated-networks-vrf.test.ts",
  "test/kernel/ovs-way-out.test.ts",
  "test/kernel/plan.test.ts",
  "test/kernel/refusals.test.ts",
  "test/kernel/several-hops.test.ts",
  "test/kernel/status.test.ts",
  "test/kernel/who-reaches-whom.test.ts",
  "test/frontends/netavark/bridge-kinds.test.ts",
  "test/frontends/netavark/vlan.test.ts",
  "test/frontends/resident/reborn.test.ts",
  "test/frontends/cli/network-remove.test.ts",
  "test/kernel/ovs-datapaths.test.ts",
];

const kernel = [
  "bandwidth",
  "bridge-check",
  "bridge-masquerade",
  "bridge-options",
  "bridge-removal",
  "cluster-pools",
  "firewall",
  "host-device",
  "judging",
  "loopback",
  "macvlan",
  "master",
  "netns-path",
  "ovs",
  "portmap",
  "ptp",
  "sbr",
  "several-hops",
  "status",
  "tap",
  "tuning",
  "vrf",
  "whose-link",
];

/**
 * - All kernel files about the state that plugins make, and none about packets, which do not depend on who made the state
 *   and are most of the time waited for.
 * - The runtime's commands on whole networks, podman's driver, and engines that call plugins by go-cni.
 * - The differential suite's calls of plugins, all of them: stdout, exit code and kernel must be the Go plugins' here, too.
 *   Not its turns with the Go plugins, which take longest and whose foreign calls are declined.
 * - The kill sweep of one plugin, which kills the worker at every system call: the others take the same way through the
 *   resident, and are swept in processes of their own.
 */
const again: readonly Part[] = [
  ...kernel.map((name) => ({ file: `test/kernel/${name}.test.ts` })),
  { file: "test/differential/plugins.test.ts" },
  { file: "test/engine/exec-plugin.test.ts" },
  { file: "test/real-engines/go-cni.test.ts", named: "containers at once|killed while" },
  { file: "test/faults/disk.test.ts" },
  { file: "test/faults/kill-sweep.test.ts", named: "lost: bridge (ADD|DEL) killed on a used" },
  { file: "test/faults/many-at-once.test.ts" },
  { file: "test/faults/taken-back.test.ts" },
  { file: "test/frontends/podman/attachments.test.ts" },
  { file: "test/runtime/networks.test.ts" },
  { file: "test/frontends/cli/attachments.test.ts" },
  { file: "test/frontends/hook/hook.test.ts" },
];

const RESIDENT = " through a resident", REST = " (the rest)";

/** The runs by name: `test/kernel/ptp.test.ts through a resident`. */
export const runsThroughResident: readonly string[] = again.map(({ file }) => `${file}${RESIDENT}`);

/** Every run that has a name of its own. */
export const namedRuns: readonly string[] = [...runsThroughResident, ...inShares.map(({ file }) => `${file}${REST}`)];

export function shortRuns(files: readonly string[]): string[] {
  return files.filter((file) => !aside.includes(file) && !file.startsWith(SUITES));
}

export function longRuns(files: readonly string[]): string[] {
  const whole = files.filter((file) => [...aside, ...withOtherKernel].includes(file) || file.startsWith(SUITES));
  return [...whole, ...namedRuns];
}

/** Whether the long run takes to the virtual machine what the file skips. */
export function isForOtherKernel(file: string): boolean {
  return withOtherKernel.includes(file) || inShares.some((one) => one.file === file);
}

const kinds: readonly { suffix: string; runs: readonly Part[]; env: Record<string, string> }[] = [
  { suffix: REST, runs: inShares, env: { PATCHBAY_TEST_SHARE: "rest" } },
  { suffix: RESIDENT, runs: again, env: { PATCHBAY_TEST_RESIDENT: "1" } },
];

/** What `bun test` gets for a run, and which of its tests that runs: a file's name is that of its plain run. */
export function runOf(name: string): { file: string; flags: string[]; named: RegExp; env: Record<string, string> } {
  const kind = kinds.find(({ suffix }) => name.endsWith(suffix));
  if (kind === undefined) return { file: name, flags: [], named: /^/, env: {} };
  const file = name.slice(0, -kind.suffix.length), named = kind.runs.find((one) => one.file === file)?.named;
  return { file, flags: named === undefined ? [] : ["-t", named], named: new RegExp(named ?? ""), env: kind.env };
}

/** The runs that a person asked for by this name; a PATH alone means the plain runs. */
export function matchingNamed(filters: readonly string[]): string[] {
  const wanted = filters.filter((one) => [RESIDENT, REST].some((suffix) => one.includes(suffix.trim())));
  return namedRuns.filter((name) => wanted.some((part) => name.includes(part)));
}
