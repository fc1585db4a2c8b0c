/**
 * What the full run also runs through a resident: each of these files a second time, with PATCHBAY_TEST_RESIDENT=1.
 *
 * The list is shorter than the list of test files because the whole run has to stay below 20 minutes on two processors:
 *
 * - all kernel files about the state that plugins make, and none about packets, which do not depend on who made the
 *   state and are most of the time waited for;
 * - the runtime's commands on whole networks, and podman's driver;
 * - the differential suite's calls of plugins, all of them: stdout, exit code and kernel must be the Go plugins' here, too.
 *   Not its turns with the Go plugins, which take longest and whose foreign calls are declined;
 * - the kill sweep of one plugin, which kills the worker at every system call: the others take the same way through the
 *   resident, and are swept in processes of their own.
 */
interface Again {
  file: string;
  /** A regular expression for the names of the tests; without it, all. */
  named?: string;
}

const kernel = [
  "bandwidth",
  "bridge-check",
  "bridge-masquerade",
  "bridge-options",
  "bridge-removal",
  "firewall",
  "host-device",
  "judging",
  "loopback",
  "macvlan",
  "master",
  "netns-path",
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

const again: readonly Again[] = [
  ...kernel.map((name) => ({ file: `test/kernel/${name}.test.ts` })),
  { file: "test/differential/plugins.test.ts" },
  { file: "test/engine/exec-plugin.test.ts" },
  { file: "test/faults/disk.test.ts" },
  { file: "test/faults/kill-sweep.test.ts", named: "lost: bridge (ADD|DEL) killed on a used" },
  { file: "test/faults/many-at-once.test.ts" },
  { file: "test/faults/taken-back.test.ts" },
  { file: "test/netavark/plugin/attachments.test.ts" },
  { file: "test/runtime/networks.test.ts" },
  { file: "test/runtime/cli/attachments.test.ts" },
  { file: "test/runtime/hook/hook.test.ts" },
];

const SUFFIX = " through a resident";

/** The runs by name: `test/kernel/ptp.test.ts through a resident`. */
export const runsThroughResident: readonly string[] = again.map(({ file }) => `${file}${SUFFIX}`);

/** What `bun test` gets for a run: a file's name is that of its plain run. */
export function runOf(name: string): { file: string; flags: string[]; env: Record<string, string> } {
  if (!name.endsWith(SUFFIX)) return { file: name, flags: [], env: {} };
  const file = name.slice(0, -SUFFIX.length), named = again.find((one) => one.file === file)?.named;
  return { file, flags: named === undefined ? [] : ["-t", named], env: { PATCHBAY_TEST_RESIDENT: "1" } };
}

/** Those that a person asked for by this name; a PATH alone means the plain runs. */
export function matchingThroughResident(filters: readonly string[]): string[] {
  const wanted = filters.filter((one) => one.includes(SUFFIX.trim()));
  return runsThroughResident.filter((name) => wanted.some((part) => name.includes(part)));
}
