/** Debian's containerd, with runc, in a machine of its own. Its client ctr(1) calls the plugins. */
import { expect } from "bun:test";
import { untilTrue } from "../until-true.ts";
import { patiently } from "../traffic.ts";
import { ENGINE, EngineMachine, GATEWAY, ROOT, SERVER } from "./engine-machine.ts";

const SOCKET = `${ENGINE}/containerd.sock`;
/** Without the server for kubelets, and without storage that needs devices or tools. */
const disabled = ["grpc.v1.cri", ...["aufs", "btrfs", "devmapper", "zfs"].map((name) => `snapshotter.v1.${name}`)];
const config = `
version = 2
root = "${ENGINE}/containerd"
state = "${ENGINE}/run"
disabled_plugins = ${JSON.stringify(disabled.map((name) => `io.containerd.${name}`))}
[grpc]
address = "${SOCKET}"
`;

/** Where containerd, its shims and runc write what they know, which `ctr container ls` tells. */
export const OWN_FILES = new RegExp(`^[-+] file (${ENGINE}|/run/containerd)/`);

export class Containerd {
  private constructor(readonly room: EngineMachine) {}

  static async open(room: EngineMachine): Promise<Containerd> {
    const containerd = new Containerd(room), configFile = `${ENGINE}/config.toml`;
    await room.machine.sh(`cat >${configFile} <<'END'\n${config}\nEND`);
    room.start(["sh", "-c", `exec containerd --config ${configFile} >${ENGINE}/log 2>&1`]);
    await untilTrue(() => room.run(["ctr", "-a", SOCKET, "version"]), ({ code }) => code === 0);
    return containerd;
  }

  async call(...words: string[]): Promise<string> {
    try {
      return await this.room.succeed(["ctr", "-a", SOCKET, ...words]);
    } catch (error) {
      throw new Error(`${error}\n${await this.room.machine.sh(`tail -n 20 ${ENGINE}/log`)}`);
    }
  }

  /** Runs a script with `busybox` in a container that is removed when it ends, and that must succeed: of what a container
   * prints as it ends, a busy ctr(1) may lose the last lines. */
  async succeedOnce(name: string, script: string): Promise<void> {
    await this.call(...this.#run(name, ["/bin/busybox", "sh", "-c", script]));
  }

  async pingOnce(name: string): Promise<void> {
    await this.succeedOnce(name, `busybox ping -c 1 ${patiently().join(" ")} ${GATEWAY}`);
  }

  /** Starts a web server; answers what ends it, and with it the container. */
  serve(name: string): { end: () => Promise<void> } {
    const ended = this.room.run(["ctr", "-a", SOCKET, ...this.#run(name, SERVER)]);
    const end = async () => {
      await this.call("task", "kill", "-s", "SIGKILL", name);
      expect(await ended).toEqual({ code: 137, stdout: "", stderr: "" });
    };
    return { end };
  }

  /** ctr(1) starts the container's program when its network is there. Before, an ADD may be taken back and run again. */
  async addressOf(name: string): Promise<string> {
    const running = new RegExp(`^${name} +([0-9]+) +RUNNING`, "m");
    // The list fails when a container of it ends meanwhile.
    const list = () => this.room.run(["ctr", "-a", SOCKET, "task", "ls"]);
    const { stdout } = await untilTrue(list, ({ stdout }) => running.test(stdout));
    const inside = ["nsenter", `--net=/proc/${running.exec(stdout)![1]}/ns/net`, "ip", "-o", "-4", "addr", "show"];
    const links = await this.room.succeed([...inside, "eth0"]);
    return /eth0 +inet ([0-9.]+)\/24 /.exec(links)![1]!;
  }

  #run(name: string, command: readonly string[]): string[] {
    // The kernel may have no controllers to give away, and shares of processors need one.
    const group = ["--cgroup", `/${this.room.group}/${name}`, "--cpu-shares", "0"];
    return ["run", "--rm", "--cni", ...group, "--rootfs", ROOT, name, ...command];
  }

  /** What is there of containers, beside the files. */
  async left(): Promise<string[]> {
    const containers = await this.call("container", "ls", "-q");
    return [containers, ...this.room.processes()].filter((one) => one !== "" && one !== "containerd");
  }
}
