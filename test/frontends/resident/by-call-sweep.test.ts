/**
 * A call that starts a resident is killed at every system call behind its answer, and the resident at every one until it
 * listens. There is never more than one, and a later call starts one and is served.
 */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { inOwnSystem } from "../../support/own-system.ts";

// It is about residents that calls start.
delete process.env.PATCHBAY_TEST_RESIDENT;

/** Its own threads and memory; how many of these it makes differs from run to run. */
const OF_THE_RUNTIME =
  /^(futex|madvise|mmap|munmap|mprotect|brk|getpid|sched_\w+|clock_\w+|rt_sig\w+|execve|exit_group)$/;
/** Each so many points: as many as the system that the script runs in has time for. */
const EVERY = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 1 : 3;

const CALL = "env CNI_COMMAND=DEL CNI_CONTAINERID=x CNI_IFNAME=eth0 CNI_PATH=/run/cni";
const SWEPT = {
  caller: {
    command: `${CALL} strace -o /run/trace INJECTION /run/cni/bridge </run/conf`,
    from: ".patchbay-resident",
  },
  resident: {
    command: "setsid strace -o /run/trace INJECTION /run/cni/patchbay serve --by-call --idle=900",
    from: "setsid(",
  },
};

test.each(Object.entries(SWEPT))("the %s killed at every system call of the start", async (_, { command, from }) => {
  await using machine = await openMachine();
  const plain = command.replace("INJECTION", "");
  const trace = await inOwnSystem(
    machine,
    `(${plain}) >/dev/null 2>&1 </run/conf &
    until_true one; until_true is_served
    kill $(resident); until_true none; wait
    cat /run/trace`,
  );
  const points = pointsIn(trace, from).filter((_, index) => index % EVERY === 0);
  expect(points.length).toBeGreaterThan(10);
  const said = await inOwnSystem(
    machine,
    `printf '%s\\n' ${points.map((one) => `'${one}'`).join(" ")} >/run/points
    kills=0
    served_now() { call_once; is_served; }
    while read -r syscall nth; do
      (${command.replace("INJECTION", "-e inject=$syscall:signal=KILL:when=$nth")}) >/dev/null 2>&1 </run/conf &
      until_true grep -qsE 'killed by|exited with|listen\\(' /run/trace
      ! grep -q 'killed by SIGKILL' /run/trace || kills=$((kills+1))
      [ "$(residents)" -le 1 ] || echo "$(residents) residents after $syscall $nth"
      # One that is traced may be killed a moment later.
      until_true served_now; one || echo "$(residents) residents in the end after $syscall $nth"
      kill -9 $(resident); until_true none; wait
      rm -f /run/trace
    done </run/points
    [ $kills -gt ${Math.floor(points.length * 0.7)} ] || echo "only $kills kills"
    echo all`,
  );
  expect(said).toBe("all\n");
});

/** `NAME NTH` of the system calls from the first line with the text on. */
function pointsIn(trace: string, from: string): string[] {
  const counts = new Map<string, number>(),
    lines = trace.split("\n"),
    first = lines.findIndex((one) => one.includes(from));
  return lines.flatMap((line, index) => {
    const syscall = /^([a-z_0-9]+)\(/.exec(line)?.[1];
    if (syscall === undefined) return [];
    counts.set(syscall, (counts.get(syscall) ?? 0) + 1);
    return index < first || OF_THE_RUNTIME.test(syscall) ? [] : [`${syscall} ${counts.get(syscall)}`];
  });
}
