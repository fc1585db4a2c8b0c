/**
 * A machine with Patchbay installed, for a container engine of Debian. /etc, /opt, /dev/shm and /sys/fs/cgroup are its own,
 * besides what every machine has of its own. The engine may be of another root directory, such as another release of Debian;
 * then it has that one's files, and shares the folders that are the machine's own.
 *
 * Engines leave processes that have no parent, and containers have mount namespaces of their own. So what is started with
 * `run` and `start` is in one control group, and all of it ends with the test, however that ends.
 */
import { endGroup } from "../end-group.ts";
import { readdirSync, readFileSync } from "node:fs";
import type { Subprocess } from "bun";
import { type Machine, type MachineOptions, openMachine, type Outcome } from "../machine.ts";
import { enterSharedRoot } from "../other-root.ts";
import { PATCHBAY } from "../plugins.ts";
import { untilTrue } from "../until-true.ts";

/** Where engines look for plugins. */
export const PLUGINS = "/opt/cni/bin";
/** The file that all plugins are links to. */
export const PROGRAM = `${PLUGINS}/patchbay`;
/** Everything that an engine keeps, where it can be told where. */
export const ENGINE = "/run/engine";
/** A folder with busybox(1) as its only program. */
export const ROOT = `${ENGINE}/root`;

export const NETWORK = "net";
export const GATEWAY = "10.1.0.1";
const network = {
  cniVersion: "1.0.0",
  name: NETWORK,
  plugins: [
    {
      type: "bridge",
      bridge: "cni0",
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "firewall" },
    { type: "tuning" },
  ],
};

/** What a container's web server answers. */
export const PAGE = "a page of the container";
/** The web server. */
export const SERVER = ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"];

const keeper = `
trap '' INT TERM HUP
set -e
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/patchbay-engine-$$
mkdir $group
end() {
  ${endGroup("$group")}
  find $group -depth -type d -exec rmdir {} +
}
trap end EXIT
for folder in etc opt; do
  own=${ENGINE}/own/$folder
  mkdir -p $own/files $own/work
  mount -t overlay overlay -o lowerdir=\${3:+$3/$folder:}/$folder,upperdir=$own/files,workdir=$own/work /$folder
done
mount -t tmpfs tmpfs /dev/shm
mkdir -p ${PLUGINS} /etc/cni/net.d
rm -f /etc/cni/net.d/*
${PATCHBAY} install ${PLUGINS} >/dev/null
printf %s "$1" >/etc/cni/net.d/10-net.conflist
mkdir -p ${ROOT}
cd ${ROOT}
mkdir bin dev etc proc run sys www
cp /bin/busybox bin
echo "$2" >www/index.html
basename $group
cat >/dev/null
`;

/** All that the engine started ends at once, and of the kernel and /run nothing stays; what is on disk does. */
const reboot = `
group=/sys/fs/cgroup/$0
${endGroup("$group")}
find $group -mindepth 1 -depth -type d -exec rmdir {} +
awk '$5 ~ "^/run/." && $5 !~ "^${ENGINE}/own" { print $5 }' /proc/self/mountinfo | sort -r | while read -r place; do
  # What this machine's own /run hides is not there to be unmounted; what stays mounted, rm(1) below refuses.
  umount -l $place 2>/dev/null || true
done
find /run -mindepth 1 -maxdepth 1 ! -path ${ENGINE} -exec rm -r {} +
find ${ENGINE} -mindepth 1 -maxdepth 1 ! -name own ! -name root ! -name storage -exec rm -r {} +
find /dev/shm -mindepth 1 -delete
mkdir -p /run/netns
for kind in bridge veth macvlan; do
  for link in $(ip -o link show type $kind | sed 's/^[0-9]*: //; s/[:@].*//'); do
    # Its other end, or its namespace, may have taken it along.
    ip link del $link 2>/dev/null || ! ip link show $link 2>/dev/null
  done
done
nft flush ruleset
`;

const join = 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs"; exec "$@"';

interface EngineMachineOptions extends MachineOptions {
  /** The directory of the engine's files, where they are not this machine's. */
  root?: string;
}

/** For `test.each`, which ends the test's name with the first: whose engine it is. */
export const USERS = [["", {}], [", in a user namespace", { isRootless: true }]] as const;

export class EngineMachine implements AsyncDisposable {
  readonly #otherGroups = new Set<string>();

  private constructor(
    readonly machine: Machine,
    /** The machine, in the engine's root directory. */
    readonly inside: Machine,
    /** Below /sys/fs/cgroup in the machine. */
    readonly group: string,
    private readonly keeper: Subprocess<"pipe", "pipe", "pipe">,
  ) {}

  static async open({ root, ...options }: EngineMachineOptions = {}): Promise<EngineMachine> {
    const machine = await openMachine(options);
    const keeping = machine.start(["sh", "-c", keeper, "keeper", JSON.stringify(network), PAGE, root ?? ""]);
    const { value } = await keeping.stdout.getReader().read();
    const group = new TextDecoder().decode(value).trim();
    if (group !== "") {
      const inside = root === undefined ? machine : await enterSharedRoot(machine, root, ["etc", "opt", "var/lib"]);
      return new EngineMachine(machine, inside, group, keeping);
    }
    const said = await keeping.stderr.text();
    await machine[Symbol.asyncDispose]();
    throw new Error(`no machine for an engine: ${said}`);
  }

  run(command: readonly string[]): Promise<Outcome> {
    return this.inside.run(["sh", "-c", join, this.group, ...command]);
  }

  start(command: readonly string[]): Subprocess<"pipe", "pipe", "pipe"> {
    return this.inside.start(["sh", "-c", join, this.group, ...command]);
  }

  /** Runs a command that must succeed and say nothing on stderr; answers its stdout. */
  async succeed(command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(command);
    if (code !== 0 || stderr !== "") throw new Error(`exit ${code}: ${stderr || stdout}\n${command.join(" ")}`);
    return stdout.trim();
  }

  /** What a web server answers to this machine, as soon as it listens. */
  async page(place: string): Promise<string> {
    const ask = () => this.machine.run(["busybox", "wget", "-qO-", `http://${place}/`]);
    return (await untilTrue(ask, ({ code }) => code === 0)).stdout.trim();
  }

  /** Names of the processes that were started here, and of theirs: the engine's, and those in containers. */
  processes(): string[] {
    return this.#processes().map(({ name }) => name);
  }

  /** The first of a name. */
  pidOf(name: string): number | undefined {
    return this.#processes().find((one) => one.name === name)?.pid;
  }

  /** Kills those of a name. */
  endNow(name: string): void {
    for (const one of this.#processes()) if (one.name === name) process.kill(one.pid, "SIGKILL");
  }

  #processes(): { pid: number; name: string }[] {
    const top = `/proc/${this.machine.pid}/root/sys/fs/cgroup/${this.group}`;
    const lists = readdirSync(top, { recursive: true, encoding: "utf8" }).filter((path) =>
      /cgroup.procs$/.test(path)
    );
    return lists.flatMap((list) => orNone(() => readFileSync(`${top}/${list}`, "utf8")).split("\n"))
      .filter((pid) => pid !== "")
      .map((pid) => ({ pid: Number(pid), name: orNone(() => readFileSync(`/proc/${pid}/comm`, "utf8")).trim() }))
      .filter(({ name }) => name !== "");
  }

  /** For control groups that an engine makes elsewhere: they end with the machine's. */
  addGroup(name: string): void {
    this.#otherGroups.add(name);
  }

  async #endOtherGroups(): Promise<void> {
    // The engine that made a group may be about to remove it.
    await this.machine.sh(`
      for group in ${[...this.#otherGroups].join(" ")}; do
        cd /sys/fs/cgroup
        while [ -d $group ]; do
          { echo 1 >$group/cgroup.kill && rmdir $group; } 2>/dev/null || sleep 0.01
        done
      done`);
    this.#otherGroups.clear();
  }

  async reboot(): Promise<void> {
    await this.#endOtherGroups();
    await this.machine.sh(reboot.replace("$0", this.group));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endOtherGroups();
    await this.keeper.stdin.end();
    await this.keeper.exited;
    await this.machine[Symbol.asyncDispose]();
  }
}

/** What is read may end meanwhile. */
function orNone(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
