/**
 * Shell: ends all processes of a cgroup, also those that join it meanwhile. A process may
 * join it only after the first kill.
 */
export function endGroup(path: string): string {
  return `until grep -q 'populated 0' ${path}/cgroup.events; do echo 1 >${path}/cgroup.kill; sleep 0.01; done`;
}
