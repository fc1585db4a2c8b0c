/**
 * systemd as process 1 of namespaces of its own inside a machine, with no units but those that a test installs. It sees the
 * machine's namespaces of containers appear and go, as on a host, and all that it starts is in one control group, which ends
 * with the test.
 *
 * Nothing of the host is its to change: the root file system, /dev, /sys and the kernel's settings are read-only, but for
 * those of the machine's network; /tmp is its own; units and generators of the distribution are not read.
 */
import { endGroup } from "./end-group.ts";
import type { Subprocess } from "bun";
import type { Machine } from "./machine.ts";

const keeper = `
trap '' INT TERM HUP
set -e
mount --make-rshared /
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/patchbay-systemd-$$
mkdir $group
end() {
  ${endGroup("$group")}
  find $group -depth -type d -exec rmdir {} +
}
trap end EXIT
(
  sh -c 'echo $PPID >"$0/cgroup.procs"' $group
  exec setpriv --pdeathsig KILL unshare --mount --propagation slave --pid --fork --kill-child --cgroup --uts --ipc sh -ec "$1" </dev/null
) &
until test -S /run/systemd/private; do kill -0 $!; sleep 0.01; done
pgrep -P $!
cat >/dev/null
`;

const readOnly = (path: string) => `mount --bind ${path} ${path}\nmount -o remount,ro,bind ${path}`;

const init = `
mount -t proc proc /proc
for folder in /tmp /var/tmp /etc/systemd; do mount -t tmpfs tmpfs $folder; done
mkdir /etc/systemd/system
for target in basic multi-user network shutdown sockets sysinit; do
  printf '[Unit]\\nDefaultDependencies=no\\n' >/etc/systemd/system/$target.target
done
mount -o remount,ro,bind /
${readOnly("/dev")}
${readOnly("/sys")}
mount -t cgroup2 cgroup2 /sys/fs/cgroup
${readOnly("/proc/sys")}
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,rw,bind /proc/sys/net
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
  SYSTEMD_UNIT_PATH=/etc/systemd/system$OTHER_UNITS SYSTEMD_GENERATOR_PATH=/none SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/none \\
  /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=no
`;

export class Systemd implements AsyncDisposable {
  private constructor(
    /** The machine as systemd's services see it: what runs in it is among their processes and mounts. */
    readonly inside: Machine,
    private readonly keeping: Subprocess<"pipe", "pipe", "pipe">,
  ) {}

  /** It also reads units in these directories. */
  static async start(machine: Machine, directories: readonly string[] = []): Promise<Systemd> {
    const others = `OTHER_UNITS=${directories.map((one) => `:${one}`).join("")}\n`;
    const keeping = machine.start(["sh", "-c", keeper, "keeper", others + init]);
    const { value } = await keeping.stdout.getReader().read();
    const pid = new TextDecoder().decode(value).trim();
    if (pid === "") throw new Error(`systemd does not start: ${await keeping.stderr.text()}`);
    const enter = ["nsenter", `--mount=/proc/${pid}/ns/mnt`, `--pid=/proc/${pid}/ns/pid`, "--"];
    const inside: Machine = {
      ...machine,
      run: (command, options) => machine.run([...enter, ...command], options),
      start: (command) => machine.start([...enter, ...command]),
      sh: (script, options) =>
        machine.sh(`exec ${enter.join(" ")} sh -ec "$SCRIPT"`, {
          ...options,
          env: { ...options?.env, SCRIPT: script },
        }),
    };
    return new Systemd(inside, keeping);
  }

  /** One property of a unit, as systemctl(1) shows it. */
  async property(unit: string, name: string): Promise<string> {
    return (await this.inside.sh(`systemctl show --value --property=${name} ${unit}`)).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keeping.stdin.end();
    await this.keeping.exited;
  }
}
