/** Debian's podman, with conmon and crun, in a machine of its own; it calls the plugins itself. */
import { expect } from "bun:test";
import { patiently } from "../traffic.ts";
import { ENGINE, EngineMachine, GATEWAY, NETWORK, PAGE, PLUGINS, PROGRAM, ROOT, SERVER } from "./engine-machine.ts";

/** Where podman looks for netavark and aardvark-dns. */
export const HELPERS = "/opt/podman";

const backends = {
  cni: `
network_backend = "cni"
cni_plugin_dirs = ["${PLUGINS}"]
network_config_dir = "/etc/cni/net.d"
`,
  netavark: `
network_backend = "netavark"
network_config_dir = "/etc/containers/networks"
`,
};
type Backend = keyof typeof backends;

/** Kernels and containers differ in which cgroups and limits they have to give, so containers get none. */
const containersConf = (backend: Backend) => `
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
helper_binaries_dir = ["${HELPERS}", "/usr/lib/podman"]
[network]
${backends[backend]}
`;
const storageConf = `
[storage]
driver = "vfs"
runroot = "${ENGINE}/run"
graphroot = "${ENGINE}/storage"
`;
/** Where podman and crun write what they know, which `podman container ls` tells. */
export const OWN_FILES = new RegExp(`^[-+] file (${ENGINE}|/run/libpod|/run/crun)/`);

/** Kept by netavark too: podman's leases, locks, and what tells that there was a container once. */
export const KEPT = new RegExp(
  `${OWN_FILES.source}|^[-+] file /run/containers/networks/(ipam.db|.*lock)|^[-+] file /run/lock/netavark.lock`,
);

export const IMAGE = "localhost/box";

interface Networking {
  netavark?: string;
  /** As podman has them in files. This podman does not know drivers other than netavark's, so it cannot make them. */
  networks?: readonly { name: string }[];
}

/** Nor does it tell netavark where other drivers are. */
const DRIVERS = "/run/drivers";
const withDrivers = `
      ln -s ${PROGRAM} ${DRIVERS}/patchbay
      mv ${HELPERS}/netavark ${DRIVERS}/
      printf '#!/bin/sh\\nexec ${DRIVERS}/netavark --plugin-directory ${DRIVERS} "$@"\\n' >${HELPERS}/netavark
      chmod 755 ${HELPERS}/netavark
`;

export class Podman {
  private constructor(readonly room: EngineMachine) {}

  /** podman calls the plugins by itself, or the program at `netavark`, which may be Debian's. */
  static async open(room: EngineMachine, { netavark, networks = [] }: Networking = {}): Promise<Podman> {
    const podman = new Podman(room), backend = netavark === undefined ? "cni" : "netavark";
    await room.machine.sh("mkdir -p /etc/containers/networks");
    for (const network of networks) {
      await room.machine.sh(`cat >/etc/containers/networks/${network.name}.json`, { stdin: JSON.stringify(network) });
    }
    await room.machine.sh(`
      cat >/etc/containers/containers.conf <<'END'
${containersConf(backend)}
END
      cat >/etc/containers/storage.conf <<'END'
${storageConf}
END
      mkdir -p ${HELPERS} ${DRIVERS}
      ${netavark === undefined ? "" : `ln -sf ${netavark} ${HELPERS}/netavark`}
      ${networks.length === 0 ? "" : withDrivers}
      ln -sf /usr/lib/podman/aardvark-dns ${HELPERS}/aardvark-dns
    `);
    await room.succeed(["sh", "-c", `tar -C ${ROOT} -c . | podman import -q - ${IMAGE}`]);
    return podman;
  }

  call(...words: string[]): Promise<string> {
    return this.room.succeed(["podman", ...words]);
  }

  /** Starts a web server whose port the host has as `port`. */
  async serve(name: string, port: number, network = NETWORK): Promise<void> {
    await this.call("run", "-d", "--name", name, "--network", network, "-p", `${port}:80`, IMAGE, ...SERVER);
    expect(await this.room.page(`127.0.0.1:${port}`)).toBe(PAGE);
  }

  async remove(name: string): Promise<void> {
    expect(await this.call("rm", "-f", "-t", "0", name)).toBe(name);
  }

  /** Runs busybox(1) in a container that is removed when it ends; answers what it printed. */
  async once(name: string, ...words: string[]): Promise<string> {
    return await this.call(...onceIn(name, NETWORK, words));
  }

  /** As soon as the command succeeds: aardvark-dns reads its names again after setup has returned, as with netavark. */
  async onceNamesAnswer(name: string, ...words: string[]): Promise<string> {
    return await this.once(name, "sh", "-c", 'until busybox "$@"; do busybox sleep 0.1; done', "sh", ...words);
  }

  async onceIn(network: string, ...words: string[]): Promise<string> {
    return await this.call(...onceIn("once", network, words));
  }

  /** Whether the command in such a container succeeds. */
  async succeeds(name: string, network: string, ...words: string[]): Promise<boolean> {
    return (await this.room.run(["podman", ...onceIn(name, network, words)])).code === 0;
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

function onceIn(name: string, network: string, words: string[]): string[] {
  return ["run", "--rm", "--cap-add", "net_raw", "--name", name, "--network", network, IMAGE, "busybox", ...words];
}
