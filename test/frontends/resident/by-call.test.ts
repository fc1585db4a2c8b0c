/** A resident that a call starts: what it has, when it comes and when it does not, and when it ends. */
import { expect, test } from "bun:test";
import { lacks } from "../../support/kernel-features.ts";
import { openMachine } from "../../support/machine.ts";
import { inOwnSystem } from "../../support/own-system.ts";
import { writeOtherBuild } from "../../support/other-build.ts";

// It is about calls that no resident serves at first.
delete process.env.PATCHBAY_TEST_RESIDENT;

const CALL = "CNI_COMMAND=DEL CNI_CONTAINERID=x CNI_IFNAME=eth0 CNI_PATH=/run/cni /run/cni/bridge </run/conf";

async function inOwnMachine(script: string, install?: string): Promise<string[]> {
  await using machine = await openMachine();
  return (await inOwnSystem(machine, script, install)).trim().split("\n");
}

test("a call starts one, which serves the next ones and has nothing of the call", async () => {
  const said = await inOwnMachine(`
    mkdir /run/there; cd /run/there; umask 0
    echo 700 >/proc/self/oom_score_adj
    # The reader waits for the end of all that has the pipe.
    (exec 9>/run/open; trap '' TERM USR1 64; ENGINE=1 nice -n 5 chrt -b 0 ionice -c 3 taskset -c 0 setarch -R sh -c '${CALL}' 8>&1 | cat)
    one; until_true is_served
    process=$(resident)
    readlink /proc/$process/cwd
    for fd in /proc/$process/fd/*; do readlink $fd; done | grep -c '^/run/open\\|^pipe:' || true
    readlink /proc/$process/fd/0 /proc/$process/fd/1 /proc/$process/fd/2
    tr '\\0' '\\n' </proc/$process/environ | grep -c ENGINE || true
    cat /proc/$process/oom_score_adj
    [ "$(cut -d' ' -f6 /proc/$process/stat)" = $process ] && echo a session of its own
    sed -n 's/^Umask:.//p' /proc/$process/status
    cut -d' ' -f18,19,41 /proc/$process/stat; cat /proc/$process/personality; ionice -p $process
    [ "$(taskset -p $process | sed 's/.*: //')" = "$(taskset -p 1 | sed 's/.*: //')" ] && echo all processors
    # As of one that a shell has started: what the runtime has set up for itself. The shell has it ignore 2 and 3, the C
    # library 32.
    hex() { sed -n "s/^$2:./0x/p" /proc/$1/status; }
    signals() { printf '%x %x\n' $(($(hex $1 SigIgn) & ~0x80000006)) $(($(hex $1 SigCgt))); }
    of_call=$(signals $process)
    kill $process; until_true none
    /run/cni/patchbay serve 2>/dev/null & until_true is_served
    [ "$of_call" = "$(signals $!)" ] && echo usual signals
    kill $!; wait $! || true
    until_true starts_one; until_true is_served; process=$(resident)
    stat -c %a /run/patchbay/serve.sock
    tr '\\0' ' ' </proc/$process/cmdline; echo
    # Where the machine is busy, a call runs by itself.
    served_twice() { call ADD c >/dev/null; call DEL c; [ "$(served)" -ge 2 ]; }
    until_true served_twice; echo served twice
    status | grep 'call started it'
  `);
  // The pipes are the resident's own: two of its queue, one to its worker.
  const own = [
    "/dev/null",
    "/dev/null",
    "/dev/null",
    "0",
    "0",
    "a session of its own",
    "0077",
    "20 0 0",
    "00000000",
    "none: prio 0",
    "all processors",
    "usual signals",
    "700",
  ];
  const line = "a call started it; it ends when it serves nobody, or its program or .patchbay-resident changes";
  expect(said).toEqual(["/", "3", ...own, "patchbay serve --by-call --idle=900 ", "served twice", line]);
});

test("a hundred calls at once start one, and all succeed", async () => {
  expect(
    await inOwnMachine(`
    for n in $(seq 100); do (call DEL c$n && echo done >>/run/done) & done
    wait
    wc -l </run/done
    until_true is_served
    residents
    served_one() { call_once; [ "$(served)" -ge 1 ]; }
    until_true served_one; echo served
  `),
  ).toEqual(["100", "1", "served"]);
});

test("netavark and the runtime start one, too, and a hook starts none", async () => {
  expect(
    await inOwnMachine(`
    ln -s patchbay /run/cni/netavark
    echo '{}' | /run/cni/patchbay hook del >/dev/null 2>&1 || true
    residents
    mkdir /run/networks
    echo '{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"loopback"}]}' >/run/networks/net.conflist
    /run/cni/patchbay del --config-dir /run/networks net /var/run/netns/c1 >/dev/null 2>&1 || true
    residents; kill $(resident); until_true none
    teardown() { echo '{}' | /run/cni/netavark -c /run/networks teardown /var/run/netns/c1 >/dev/null 2>&1 || true; one; }
    until_true teardown; residents
  `),
  ).toEqual(["0", "1", "1"]);
});

const UNWANTED: Record<string, string> = {
  "PATCHBAY_RESIDENT is off": "PATCHBAY_RESIDENT=off call_once",
  "for commands of people": "/run/cni/patchbay ls >/dev/null; /run/cni/patchbay version >/dev/null",
  "at a terminal": `script -qec "${CALL}" /dev/null >/dev/null`,
  "in another mount namespace": `unshare --mount sh -c '${CALL}'`,
  "in another network namespace": `unshare --net sh -c '${CALL}'`,
  "in a user namespace": `unshare --user --map-root-user sh -c '${CALL}' >/dev/null || true`,
  "with fewer rights": `setpriv --bounding-set=-net_raw sh -c '${CALL}'`,
  "with a limit of file size": `sh -c 'ulimit -f 7000; ${CALL}'`,
  "with a limit of processor time": `sh -c 'ulimit -t 1000; ${CALL}'`,
  "with a limit of data": `sh -c 'ulimit -d 8000000; ${CALL}'`,
  "with few open files": `sh -c 'ulimit -n 100; ${CALL}'`,
  "in another UTS namespace": `unshare --uts sh -c '${CALL}'`,
  "in another IPC namespace": `unshare --ipc sh -c '${CALL}'`,
  "with other groups": `setpriv --groups 5,27 sh -c '${CALL}'`,
  "for a person who has logged in":
    `[ ! -e /proc/self/loginuid ] || sh -c 'echo 1001 >/proc/self/loginuid && grep -qx 1001 /proc/self/loginuid; ${CALL}'`,
  "with a limit of address space": `sh -c 'ulimit -v 800000000; ${CALL}'`,
  "where others may write to the directory":
    "chmod 775 /run/patchbay; call_once 2>/dev/null; chmod 755 /run/patchbay",
  "in another root directory":
    `mkdir /run/root; mount --rbind / /run/root; chroot /run/root sh -c '${CALL}'; umount -l /run/root`,
};

test.each(Object.entries(UNWANTED))("none is started %s", async (_, script) => {
  expect(await inOwnMachine(`${script}; residents; until_true starts_one`)).toEqual(["0"]);
});

test("none is started where the file beside the program is gone", async () => {
  const remove = "/run/cni/patchbay install --no-resident /run/cni >/dev/null";
  expect(await inOwnMachine(`${remove}; for n in 1 2 3; do call_once; residents; done`)).toEqual(["0", "0", "0"]);
});

test.skipIf(lacks("cgroups of version 2"))("none is started where memory is limited, here or above", async () => {
  expect(
    await inOwnMachine(`
    mount -t tmpfs tmpfs /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    where=/sys/fs/cgroup limit=memory.max none=max
    if ! grep -q memory $where/cgroup.controllers; then
      umount $where; mkdir $where/memory; mount -t cgroup -o memory cgroup $where/memory
      where=$where/memory limit=memory.limit_in_bytes none=-1
    fi
    top=$where/patchbay-by-call-$(stat -Lc %i /proc/self/ns/pid) below=$where/patchbay-by-call-$(stat -Lc %i /proc/self/ns/pid)/below
    mkdir -p $below
    [ $none = -1 ] || for group in $where $top; do echo +memory >$group/cgroup.subtree_control; done
    inside() { sh -c 'echo $$ >'$below'/cgroup.procs; ${CALL}'; residents; }
    echo 100M >$top/$limit; inside
    echo $none >$top/$limit; echo 100M >$below/$limit; inside
    echo $none >$below/$limit; inside
    kill $(resident); until_true none
    # A worker keeps no pages there. Two rehearsals take some hundredths of a second, on a machine that has time for them.
    kept() {
      for each in $(seq $2); do
        sleep 0.1; pages=$(sed -n 's/^VmLck:[^0-9]*//p' /proc/$(pgrep -P $1)/status)
        case "$pages" in ?????*kB) break ;; esac
      done
      echo "$pages"; kill $1; wait $1 || true
    }
    for where in $below 0; do
      [ $where = 0 ] || echo 900M >$below/$limit
      sh -c '[ $1 = 0 ] || echo $$ >$1/cgroup.procs; exec /run/cni/patchbay serve --rehearsals=2' sh $where 2>/dev/null &
      served_by=$!; until_true is_served; kept $served_by $([ $where = 0 ] && echo 600 || echo 20)
    done
    until_true rmdir $below 2>/dev/null; rmdir $top
  `),
  ).toEqual(["0", "0", "1", "0 kB", expect.stringMatching(/^[1-9]\d{4,} kB$/)]);
});

test("none is started where another resident listens, and a second one by hand is refused", async () => {
  expect(
    await inOwnMachine(`
    /run/cni/patchbay serve >/run/log 2>&1 &
    until_true is_served
    # A call that it declines runs by itself.
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/no-bus
    declined_one() { call_once; status | grep -q 'bus [1-9]'; }
    until_true declined_one; residents
    unset DBUS_SYSTEM_BUS_ADDRESS
    kill $!; wait $!
    until_true starts_one; residents
    until_true is_served
    /run/cni/patchbay serve --by-call 2>&1 || echo $?
  `),
  ).toEqual(["0", "1", expect.stringContaining("a call has started another resident"), "1"]);
});

test("who starts a resident, and who wants none, ends the one that a call has started", async () => {
  expect(
    await inOwnMachine(`
    call_once; until_true is_served
    /run/cni/patchbay serve 2>/dev/null &
    until_true none; until_true is_served; status | grep -c 'are served'; call_once; residents
    kill $!; wait $!
    until_true starts_one; until_true is_served
    /run/cni/patchbay install --no-resident /run/cni
    until_true none
  `),
  ).toEqual(["1", "0", "/run/cni/.patchbay-resident: removed"]);
});

test("it ends when nobody calls, at SIGTERM, and when its file changes or goes", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir -p /run/other");
  writeOtherBuild(`/proc/${machine.pid}/root/run/other/patchbay`, 1);
  const said = await inOwnSystem(
    machine,
    `
    begin() { until_true starts_one; until_true is_served; }
    /run/cni/patchbay serve --by-call --idle=1 2>/dev/null; residents
    begin; kill $(resident); until_true none; ls /run/patchbay/serve.sock 2>/dev/null || echo no socket
    begin; mv /run/other/patchbay /run/cni/patchbay; until_true none
    begin; status | grep served$
    begin; /run/cni/patchbay install --uninstall --force /run/cni >/dev/null; until_true none
    ls -A /run/cni
  `,
  );
  expect(said.trim().split("\n")).toEqual([
    "0",
    "no socket",
    "calls of this program are served",
  ]);
});

test("the status says whether the next call may start one, and what is in the way on this host", async () => {
  expect(
    await inOwnMachine(`
    status_now() { /run/cni/patchbay serve --status --json | grep -o '"mayStart": *[a-z]*' || true; }
    status_now
    exec 8>/run/patchbay/serve~by-call; flock 8; status_now; exec 8>&-
    chmod 777 /run/patchbay; status_now; status | grep -c 'start no resident: .*/run/patchbay' || true; chmod 755 /run/patchbay
    /run/cni/patchbay install --no-resident /run/cni >/dev/null; status_now
  `),
  ).toEqual(['"mayStart": true', '"mayStart": false', '"mayStart": false', "1", '"mayStart": false']);
});

test("what it has in /run may be removed, and it is still one", async () => {
  expect(
    await inOwnMachine(`
    call_once; until_true is_served
    rm -r /run/patchbay
    until_true is_served
    call_once; residents
    kill -9 $(resident); until_true none
    until_true starts_one; residents; until_true is_served
  `),
  ).toEqual(["1", "1"]);
});

const STEPS = [
  "-P /run/patchbay/serve~by-call -e inject=openat:signal=KILL",
  "-P /run/patchbay/serve~by-call -e inject=flock:signal=KILL",
  "-P /proc/self/uid_map -e inject=openat:signal=KILL",
  // Processes of the resident's, from here on.
  "-f -e inject=setsid:signal=KILL",
  "-f -e inject=execve:signal=KILL:when=2",
  "-f -e inject=listen:signal=KILL",
  "-f -P /run/patchbay/serve~board -e inject=openat:signal=KILL",
  "-f -e inject=inotify_init1:signal=KILL",
];

test("killed while it is started, caller or resident: a later call starts it, and it is one", async () => {
  const said = await inOwnMachine(`${
    STEPS.map((step, at) => `
    (${CALL.replace("/run/cni/bridge", `strace -o /run/trace${at} ${step} /run/cni/bridge`)} >/dev/null 2>&1) &
    until_true grep -qs 'killed by SIGKILL' /run/trace${at}
    until_true starts_one; until_true is_served
    one || echo "$(residents) after ${step}"
    kill $(resident); until_true none
    wait $! || true
  `).join("")
  } echo all`);
  expect(said).toEqual(["all"]);
});
