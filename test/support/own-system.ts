/** A machine's script as the first process of a process namespace, as an init system is: everything ends with it. */
import { expect } from "bun:test";
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

/** Plugins of the script's own, and functions for it. `call_once` calls one, which may start a resident. */
const PREPARED = `
mkdir -p /run/cni /run/patchbay
ip netns add c1 2>/dev/null || true
echo '{"cniVersion":"1.0.0","name":"net","type":"bridge","bridge":"br0","ipam":{"type":"host-local","subnet":"10.1.0.0/16"}}' >/run/conf
call() {
  CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/var/run/netns/\${3:-c1} CNI_IFNAME=eth0 CNI_PATH=/run/cni \\
    /run/cni/bridge </run/conf
}
call_once() { call DEL x; }
# While one executes itself it has no name for a moment, and what it starts has its name until that executes.
residents() {
  for each in 1 2 3 4 5; do
    count=$(pgrep -fc '^patchbay serve --by-call' || true); [ "$count" != 1 ] || break; sleep 0.05
  done
  echo $count
}
resident() { for each in 1 2 3 4 5 6 7 8 9; do pgrep -f '^patchbay serve --by-call' && return; sleep 0.1; done; false; }
status() { /run/cni/patchbay serve --status; }
served() { status | sed -n 's/^calls: \\([0-9]*\\) served.*/\\1/p'; }
# Until a command succeeds, for at most a minute.
until_true() { i=0; until "$@"; do i=$((i+1)); [ $i -lt 600 ] || { echo "never: $*" >&2; exit 1; }; sleep 0.1; done; }
# One that has ended may hold the lock for a moment longer.
starts_one() { call_once; one; }
none() { [ "$(residents)" = 0 ]; }
one() { [ "$(residents)" = 1 ]; }
is_served() { status >/dev/null; }
`;

/** Returns what the script prints. */
export async function inOwnSystem(machine: Machine, script: string, install = "--resident=calls"): Promise<string> {
  const installed = `${PATCHBAY} install ${install} /run/cni >/dev/null`;
  const first = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setsid", "--wait", "sh", "-ec"];
  const { code, stdout, stderr } = await machine.run([...first, `${PREPARED}\n${installed}\n${script}`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}
