/**
 * Shell: ends all processes of a cgroup, also those that join it meanwhile. Whoever starts a process in it may not have
 * got that far when it is killed for the first time.
 */
export function endGroup(path: string): string {
  return `until grep -q 'populated 0' ${path}/cgroup.events; do echo 1 >${path}/cgroup.kill; sleep 0.01; done`;
}
