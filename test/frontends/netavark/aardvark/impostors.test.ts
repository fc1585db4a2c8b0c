/** Which process is taken for aardvark-dns, with impostors and with a wrong process id in its file. */
import { expect, test } from "bun:test";
import {
  AARDVARK,
  addNames,
  DIRECTORY,
  doNames,
  filesIn,
  jug,
  LOCK,
  lookUp,
  ND,
  openBridged,
  pidFile,
  removeNames,
  untilKnown,
  web,
} from "../../../support/netavark/names.ts";

/**
 * Prints its process id, and again for each SIGHUP. `read` of bash goes on after that; the id is the one in everybody's
 * /proc.
 */
const SCRIPT = "trap 'echo told' HUP; read -r pid _ </proc/self/stat; echo $pid; while read -r _; do :; done";
const RUN = `/run/aardvark-dns -c "${SCRIPT.replaceAll("$", "\\$")}" --`;
const CONFIG = `--config ${DIRECTORY}`;
/** With a root directory of its own, in which `/link` leads to the files. */
const inOwnRoot = (command: string) =>
  `mkdir -p /run/root; mount -t tmpfs tmpfs /run/root; cd /run/root; mkdir usr proc run; ` +
  `for each in bin lib lib64; do ln -s usr/$each $each; done; ` +
  `for each in usr proc run; do mount --rbind /$each $each; done; ln -s ${DIRECTORY} link; exec chroot . ${command}`;
/** What docker leaves to a container's root. */
const CAPABILITIES = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service," +
  "+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";

/** Programs that look like aardvark-dns with these files, except for one thing. */
const impostors: [what: string, command: string][] = [
  ["the name", `cp /bin/bash /run/sardvark-dns; exec ${RUN.replace("aardvark", "sardvark")} ${CONFIG}`],
  ["the arguments", `exec ${RUN} 600`],
  ["the directory", `mkdir -p /run/elsewhere; exec ${RUN} --config /run/elsewhere`],
  ["the user", `exec setpriv --reuid=65534 --clear-groups ${RUN} ${CONFIG}`],
  ["the user namespace", `exec unshare --user --map-root-user ${RUN} ${CONFIG}`],
  ["the process namespace", `exec unshare --pid --fork --kill-child ${RUN} ${CONFIG}`],
  ["the root directory", `exec unshare --mount sh -c '${inOwnRoot(`${RUN} ${CONFIG}`).replaceAll("'", "'\\''")}'`],
  [
    "the root directory, with a link to ours",
    `exec unshare --mount sh -c '${inOwnRoot(`${RUN} --config /link`).replaceAll("'", "'\\''")}'`,
  ],
  [
    "the capabilities, where mounts are others",
    `exec unshare --mount setpriv --bounding-set ${CAPABILITIES} ${RUN} ${CONFIG}`,
  ],
  [
    "all that a container has",
    `exec unshare --mount --pid --net --ipc --uts --fork --kill-child sh -c '${
      inOwnRoot(`setpriv --bounding-set ${CAPABILITIES} ${RUN} --config /link`).replaceAll("'", "'\\''")
    }'`,
  ],
];

test.each(impostors)(
  "one that only looks like it is not told, nor ended: other than ours is %s",
  async (_, command) => {
    await using machine = await openBridged();
    const impostor = machine.start(["sh", "-c", `cp /bin/bash /run/aardvark-dns; ${command}`]);
    const said = impostor.stdout.getReader();
    const number = new TextDecoder().decode((await said.read()).value).trim();
    expect(number).toMatch(/^[0-9]+$/);
    await machine.sh(`mkdir -p ${DIRECTORY}`);
    // Where the file names it, and where it is found among all processes.
    for (const lie of [`printf ${number} >${DIRECTORY}/aardvark.pid`, "true"]) {
      await machine.sh(lie);
      expect(await addNames(machine, web)).toEqual([true]);
      expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
      await machine.sh(lie);
      expect(await addNames(machine, jug)).toEqual([true]);
      await untilKnown(machine, "jug", ["10.55.0.8"]);
      expect(await removeNames(machine, web, jug)).toEqual(["removed", "removed"]);
      await machine.sh(lie);
      expect(await removeNames(machine, web)).toEqual(["removed"]);
      expect(await filesIn(machine)).toEqual(LOCK);
    }
    expect(await machine.sh(`cat /proc/${number}/comm`)).toContain("ardvark-dns");
    await impostor.stdin.end();
    expect(await said.read()).toMatchObject({ done: true });
  },
);

test("what always starts another in its place does not keep the lock", async () => {
  await using machine = await openBridged();
  // It is not ready for SIGHUP, so it cannot be signalled.
  const again = `echo ready; while :; do /run/aardvark-dns -c 'read -r _' -- ${CONFIG}; done`;
  await machine.sh("cp /bin/bash /run/aardvark-dns");
  // Two of them, so that one is there while the other comes back.
  const starters = [machine.start(["sh", "-c", again]), machine.start(["sh", "-c", again])];
  for (const { stdout } of starters) await stdout.getReader().read();
  const [outcome] = await addNames(machine, web);
  expect(outcome).toMatch(
    new RegExp(
      `^error while applying dns entries: aardvark-dns for ${DIRECTORY} cannot be told of changes: ` +
        "process [0-9]+ has ended, and now there is process [0-9]+; stop what starts it again and again$",
    ),
  );
  await machine.sh(`flock --nonblock ${ND}/aardvark.lock true`);
  expect((await filesIn(machine))["aardvark-dns/n1"]).toBeUndefined();
  for (const starter of starters) {
    starter.kill("SIGKILL");
    await starter.exited;
    await starter.stdin.end();
  }
  expect(await addNames(machine, web)).toEqual([true]);
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  await removeNames(machine, web);
});

/** Three processes that seem to end, and do not. `$!` is the last one. */
const lingering: [what: string, command: string, longWaits: number][] = [
  [
    "whose arguments are overwritten",
    `bash -c "exec -a '' /run/aardvark-dns"`,
    0,
  ],
  // The first of its threads has ended, and others have not.
  [
    "whose first thread has ended",
    `perl -Mthreads -MPOSIX=uname -e 'open C, ">/proc/self/comm"; syswrite C, "aardvark-dns"; close C; ` +
    `threads->create(sub { sleep }); syscall((uname)[4] eq "x86_64" ? 60 : 93, 0)'`,
    1,
  ],
];

test.each(lingering)("those %s do not keep the lock, however many", async (_, command, longWaits) => {
  await using machine = await openBridged();
  // A file that is no terminal and never ends is their input.
  await machine.sh("cp /bin/bash /run/aardvark-dns; mkfifo /run/endless");
  const isReady = longWaits === 0
    ? `tr -d "\\0" </proc/$!/cmdline | cmp -s - /dev/null && grep -qx aardvark-dns /proc/$!/comm`
    : `! grep -q ^VmSize: /proc/$!/status`;
  const around =
    `exec 3<>/run/endless; for each in 1 2 3; do ${command} <&3 >/dev/null & until ${isReady}; do :; done; ` +
    `done; strace -qq -e trace=/^p?poll -o /run/trace "$@"; exit $?`;
  // They end with the namespace, and no other test meets them.
  const through = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", around, "sh"];
  const { outcomes } = await doNames(machine, [{ verb: "add", spec: web }, { verb: "remove", spec: web }], {
    through,
  });
  expect(outcomes).toEqual([true, "removed"]);
  const trace = await machine.sh("cat /run/trace");
  const waits = trace.match(/^.*(?:, [0-9]{3,}|tv_sec=[1-9].*)\) += 0 \(Timeout\)$/gm) ?? [];
  expect(waits.length).toBeLessThanOrEqual(longWaits);
});

/** How the next caller meets the aardvark-dns that an earlier one has started from /run/own. */
const meetings: [what: string, change: string, caller: { binary?: string; through?: string[] }][] = [
  // As podman does for each call without root, and systemd for a service with a /tmp of its own.
  ["with mounts of its own", "true", { through: ["unshare", "--mount"] }],
  ["after an upgrade", "cp /run/own/aardvark-dns /run/own/new; mv /run/own/new /run/own/aardvark-dns", {}],
  [
    "after an upgrade that moved it aside",
    "mv /run/own/aardvark-dns /run/own/old; cp /run/own/old /run/own/aardvark-dns",
    {},
  ],
  ["that has it elsewhere", "true", { binary: AARDVARK }],
];

test.each(meetings)("a caller %s tells the one that runs", async (_, change, { through = [], binary }) => {
  await using machine = await openBridged();
  await machine.sh(`mkdir /run/own; cp ${AARDVARK} /run/own/aardvark-dns`);
  const own = "/run/own/aardvark-dns";
  // A daemon that has come with other mounts is told by those with ours, and the other way round.
  for (const [first, second] of [[[], through], [through, []]]) {
    await doNames(machine, [{ verb: "add", spec: { ...web, binary: own } }], { through: first });
    const { stdout } = await machine.run(["pgrep", "-f", `^${own}`]);
    await machine.sh(change);
    const spec = { ...jug, binary: binary ?? own };
    expect(await doNames(machine, [{ verb: "add", spec }], { through: second })).toMatchObject({ outcomes: [true] });
    await untilKnown(machine, "jug", ["10.55.0.8"]);
    expect((await machine.run(["pgrep", "-x", "aardvark-dns"])).stdout).toContain(stdout);
    expect(pidFile(machine)).toBe(stdout.trim());
    const steps = [web, jug].map((each) => ({ verb: "remove" as const, spec: { ...each, binary: spec.binary } }));
    expect((await doNames(machine, steps, { through: second })).outcomes).toEqual(["removed", "removed"]);
    expect(await filesIn(machine)).toEqual(LOCK);
  }
});
