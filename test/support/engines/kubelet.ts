/** Debian's containerd with its server for kubelets, in a machine of its own; a pod's only process is a web server. */
import { untilTrue } from "../until-true.ts";
import { Cri, type PortMapping } from "./cri.ts";
import { ENGINE, EngineMachine, PLUGINS, ROOT, SERVER } from "./engine-machine.ts";
import type { Subprocess } from "bun";

const SOCKET = `${ENGINE}/containerd.sock`;
const IMAGE = "localhost/box:latest";
const disabled = ["aufs", "btrfs", "devmapper", "zfs"].map((name) => `io.containerd.snapshotter.v1.${name}`);
/** What containerd keeps over a boot. It tidies up there whenever it likes, so this is not where tests look for files. */
const DISK = "/srv";
/** The kernel may have no controllers to give away, and no devices for other storage. */
const config = (plugins: string) => `
version = 2
root = "${DISK}/containerd"
state = "${ENGINE}/run"
disabled_plugins = ${JSON.stringify(disabled)}
[grpc]
address = "${SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "${IMAGE}"
disable_cgroup = true
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "${plugins}"
conf_dir = "/etc/cni/net.d"
`;

/** An image of one layer, as `docker save` writes it, so that no registry is asked. */
const writeImage = `
cd $(mktemp -d /run/image-XXXXXX)
tar -C ${ROOT} -cf layer.tar .
sum=$(sha256sum layer.tar | cut -d' ' -f1)
cat >config.json <<END
{"architecture":"$(dpkg --print-architecture)","os":"linux",
 "config":{"Entrypoint":${JSON.stringify(SERVER)}},"rootfs":{"type":"layers","diff_ids":["sha256:$sum"]}}
END
echo '[{"Config":"config.json","RepoTags":["${IMAGE}"],"Layers":["layer.tar"]}]' >manifest.json
tar -cf image.tar manifest.json config.json layer.tar
ctr -a ${SOCKET} -n k8s.io images import image.tar >/dev/null
rm -r "$PWD"
`;

/** Where containerd, its shims and runc write what they know, which the list of pods tells. */
export const OWN_FILES = new RegExp(`^[-+] file (${ENGINE}|/run/containerd|/run/image-)`);

export class Kubelet {
  #process: Subprocess | undefined;
  #init: string | undefined;

  private constructor(readonly room: EngineMachine, readonly cri: Cri) {}

  /** `plugins` is the directory that containerd calls plugins in; `init` a shell script that runs "$@", which is containerd. */
  static async open(room: EngineMachine, plugins = PLUGINS, init?: string): Promise<Kubelet> {
    const kubelet = new Kubelet(room, new Cri(`/proc/${room.machine.pid}/root${SOCKET}`));
    kubelet.#init = init;
    await room.machine.sh(`mount -t tmpfs tmpfs ${DISK}`);
    await kubelet.start(plugins);
    await room.succeed(["sh", "-ec", writeImage]);
    return kubelet;
  }

  async start(plugins = PLUGINS): Promise<void> {
    const { room } = this, file = `${ENGINE}/config.toml`;
    await room.machine.sh(`mkdir -p ${ENGINE}; cat >${file} <<'END'\n${config(plugins)}\nEND`);
    const script = `exec >>${DISK}/log 2>&1; ${this.#init ?? 'exec "$@"'}`;
    this.#process = room.start(["sh", "-c", script, "sh", "containerd", "--config", file]);
    await this.untilReady();
  }

  async untilReady(): Promise<void> {
    const ask = () => this.cri.notReady().catch((error: Error) => [error.message]);
    await untilTrue(ask, (notReady) => notReady.length === 0);
  }

  /** containerd alone; the pods and their shims stay. */
  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    this.#process!.kill(signal);
    await this.#process!.exited;
    // Nobody else is told of a pod that was just starting.
    const begun = await this.room.machine.sh(
      `ls ${ENGINE}/run/io.containerd.runtime.v2.task/k8s.io 2>/dev/null || true`,
    );
    for (const id of begun.split("\n")) if (id !== "") this.room.addGroup(id);
  }

  async run(name: string, ports: readonly PortMapping[] = []): Promise<{ id: string; address: string }> {
    const id = await this.cri.runPodSandbox({ name, ports, cgroupParent: `/${this.room.group}` });
    // Without control of groups, containerd leaves it to runc where they are.
    this.room.addGroup(id);
    const { ips } = await this.cri.podSandboxStatus(id);
    return { id, address: ips[0]! };
  }

  async remove(id: string): Promise<void> {
    await this.cri.stopPodSandbox(id);
    await this.cri.removePodSandbox(id);
  }

  /** What is there of pods, beside the files. */
  async left(): Promise<string[]> {
    const namespaces = (await this.room.machine.sh("ls /run/netns")).trim();
    return [...await this.cri.sandboxIds(), namespaces, ...this.room.processes()]
      .filter((one) => one !== "" && one !== "containerd");
  }
}
