/** Debian's podman, with conmon and crun, in a machine of its own; it calls the plugins itself. */
import { expect } from "bun:test";
import { patiently } from "../traffic.ts";
import { ENGINE, EngineMachine, GATEWAY, NETWORK, PAGE, PLUGINS, ROOT, SERVER } from "./engine-machine.ts";

/** Kernels and containers differ in which cgroups and limits they have to give, so containers get none. */
const containersConf = `
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
[network]
network_backend = "cni"
cni_plugin_dirs = ["${PLUGINS}"]
network_config_dir = "/etc/cni/net.d"
`;
const storageConf = `
[storage]
driver = "vfs"
runroot = "${ENGINE}/run"
graphroot = "${ENGINE}/storage"
`;
/** Where podman and crun write what they know, which `podman container ls` tells. */
export const OWN_FILES = new RegExp(`^[-+] file (${ENGINE}|/run/libpod|/run/crun)/`);

const IMAGE = "localhost/box";

export class Podman {
  private constructor(readonly room: EngineMachine) {}

  static async open(room: EngineMachine): Promise<Podman> {
    const podman = new Podman(room);
    await room.machine.sh(`
      cat >/etc/containers/containers.conf <<'END'
${containersConf}
END
      cat >/etc/containers/storage.conf <<'END'
${storageConf}
END
    `);
    await room.succeed(["sh", "-c", `tar -C ${ROOT} -c . | podman import -q - ${IMAGE}`]);
    return podman;
  }

  call(...words: string[]): Promise<string> {
    return this.room.succeed(["podman", ...words]);
  }

  /** Starts a web server whose port the host has as `port`. */
  async serve(name: string, port: number): Promise<void> {
    await this.call("run", "-d", "--name", name, "--network", NETWORK, "-p", `${port}:80`, IMAGE, ...SERVER);
    expect(await this.room.page(`127.0.0.1:${port}`)).toBe(PAGE);
  }

  async remove(name: string): Promise<void> {
    expect(await this.call("rm", "-f", "-t", "0", name)).toBe(name);
  }

  /** Runs busybox(1) in a container that is removed when it ends; answers what it printed. */
  async once(name: string, ...words: string[]): Promise<string> {
    return await this.call(
      "run",
      "--rm",
      "--cap-add",
      "net_raw",
      "--name",
      name,
      "--network",
      NETWORK,
      IMAGE,
      "busybox",
      ...words,
    );
  }

  async pingOnce(name: string): Promise<void> {
    expect(await this.once(name, "ping", "-c", "1", ...patiently(), GATEWAY)).toContain(" 1 packets received");
  }

  /** What is there of containers, beside the files. */
  async left(): Promise<string[]> {
    const [containers, namespaces] = await Promise.all([
      this.call("container", "ls", "-aq"),
      this.room.machine.sh("ls /run/netns"),
    ]);
    return [containers, namespaces.trim(), ...this.room.processes()].filter((one) => one !== "");
  }
}
