/** How each engine is set up and called, with Patchbay and with what Patchbay replaces. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { command } from "../machine.ts";
import { eachKind, type Kind, type Place, requirePrograms } from "./place.ts";

export interface Theirs {
  /** A folder of plugins, or a netavark. */
  path: string;
}

/** What starts one container. */
export interface Call {
  words: string[];
  env: Record<string, string>;
}

export interface Ready {
  /** A container of that kind that runs the words until its stdin ends, and is then removed. */
  call(kind: Kind, name: string, words: readonly string[]): Call;
  version: string;
}

export interface Engine {
  name: string;
  /** What of theirs Patchbay stands in for. */
  replaces: "plugins" | "netavark";
  open(place: Place, theirs: Theirs | undefined): Ready | Promise<Ready>;
}

const NETWORK = "pod-start", IMAGE = "localhost/pod-start", PORT = "18080:80";
const SUBNET = "10.93.0.0/16", GATEWAY = "10.93.0.1";

const conflist = (kind: Kind) => ({
  cniVersion: "1.0.0",
  name: NETWORK,
  plugins: [
    {
      type: "bridge",
      bridge: "cni0",
      isGateway: true,
      ipMasq: true,
      ipam: {
        type: "host-local",
        dataDir: `/run/leases-${kind}`,
        ranges: [[{ subnet: SUBNET }]],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "firewall" },
    { type: "tuning" },
  ],
});

const podmanNetwork = {
  name: NETWORK,
  id: "bd".repeat(32),
  driver: "bridge",
  network_interface: "podman1",
  created: "2026-01-01T00:00:00Z",
  subnets: [{ subnet: SUBNET, gateway: GATEWAY }],
  ipv6_enabled: false,
  internal: false,
  dns_enabled: false,
  ipam_options: { driver: "host-local" },
};

/** Writes the network as the engine reads it. Returns its folder. */
function writeNetwork(place: Place, backend: "cni" | "netavark", kind: Kind): string {
  const folder = `${place.directory}/${backend}-${kind}.d`;
  mkdirSync(folder, { recursive: true });
  if (backend === "cni") writeFileSync(`${folder}/10-${NETWORK}.conflist`, JSON.stringify(conflist(kind)));
  else writeFileSync(`${folder}/${NETWORK}.json`, JSON.stringify(podmanNetwork));
  return folder;
}

/** Debian's place, and those of others. */
const HELPERS = ["/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman", "/usr/local/libexec/podman"];

/** Kernels and CI machines differ in which cgroups and limits they have to give, so containers get none. */
const containersConf = (network: string, helpers: readonly string[]) => `
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
helper_binaries_dir = ${JSON.stringify(helpers)}
[network]
${network}
`;

function openPodman(place: Place, backend: "cni" | "netavark", ours: string, theirs: string): Ready {
  requirePrograms(["podman", "conmon", "crun"]);
  const base = `${place.directory}/podman-${backend}`, storage = `${base}/storage.conf`;
  mkdirSync(base);
  writeFileSync(storage, `[storage]\ndriver = "vfs"\nrunroot = "${base}/run"\ngraphroot = "${base}/storage"\n`);
  const environments = eachKind((kind): Record<string, string> => {
    const conf = `${base}/${kind}.conf`, programs = kind === "theirs" ? theirs : ours;
    const lines = [`network_backend = "${backend}"`, `network_config_dir = "${writeNetwork(place, backend, kind)}"`];
    if (backend === "cni") lines.push(`cni_plugin_dirs = ["${programs}"]`);
    const helpers = backend === "cni" ? HELPERS : [programs, ...HELPERS];
    writeFileSync(conf, containersConf(lines.join("\n"), helpers));
    return { CONTAINERS_CONF: conf, CONTAINERS_STORAGE_CONF: storage };
  });
  const env = { ...process.env, ...environments.none };
  const script = `tar -C ${place.root} -c . | podman import -q - ${IMAGE}`;
  const { exitCode, stderr } = Bun.spawnSync(["sh", "-c", script], { env, stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`podman import: ${stderr}`);
  return {
    version: command(["podman", "--version"]).trim(),
    call: (kind, name, words) => ({
      words: [
        ...["podman", "run", "-i", "--rm", "--log-driver", "none", "--name", name],
        ...kind === "none" ? ["--network", "none"] : ["--network", NETWORK, "-p", PORT],
        ...[IMAGE, ...words],
      ],
      env: environments[kind],
    }),
  };
}

const podmanCni: Engine = {
  name: "podman-cni",
  replaces: "plugins",
  open: (place, theirs) => openPodman(place, "cni", place.plugins, theirs?.path ?? place.plugins),
};

const podmanNetavark: Engine = {
  name: "podman-netavark",
  replaces: "netavark",
  open(place, theirs) {
    const linked = `${place.directory}/theirs`;
    if (theirs !== undefined) {
      mkdirSync(linked);
      symlinkSync(theirs.path, `${linked}/netavark`);
    }
    return openPodman(place, "netavark", place.netavark, linked);
  },
};

/** ctr(1) has no options for these. */
const CTR_PLUGINS = "/opt/cni/bin", CTR_NETWORKS = "/etc/cni/net.d";

const containerd: Engine = {
  name: "containerd",
  replaces: "plugins",
  async open(place, theirs) {
    requirePrograms(["containerd", "ctr", "runc"]);
    const base = `${place.directory}/containerd`, socket = `${base}/containerd.sock`;
    mkdirSync(base);
    const folders = eachKind((kind) => writeNetwork(place, "cni", kind));
    await startContainerd(base, socket);
    // Control groups are the machine's, where another run may be.
    const group = `/patchbay-pod-start-${crypto.randomUUID()}`;
    return {
      version: command(["containerd", "--version"]).trim(),
      call(kind, name, words) {
        point(CTR_PLUGINS, kind === "theirs" ? theirs!.path : place.plugins);
        point(CTR_NETWORKS, folders[kind]);
        return {
          words: [
            ...["ctr", "-a", socket, "run", "--rm", ...kind === "none" ? [] : ["--cni"]],
            // The kernel may have no controllers to give away, and shares of processors need one.
            ...["--cgroup", `${group}-${name}`, "--cpu-shares", "0"],
            ...["--rootfs", place.root, name, ...words],
          ],
          env: {},
        };
      },
    };
  },
};

async function startContainerd(base: string, socket: string): Promise<void> {
  // Without the server for kubelets, and without storage that needs devices or tools.
  const disabled = ["grpc.v1.cri", ...["aufs", "btrfs", "devmapper", "zfs"].map((name) => `snapshotter.v1.${name}`)];
  const file = `${base}/config.toml`, log = Bun.file(`${base}/log`);
  writeFileSync(
    file,
    `version = 2\nroot = "${base}/root"\nstate = "${base}/state"\n` +
      `disabled_plugins = ${JSON.stringify(disabled.map((name) => `io.containerd.${name}`))}\n` +
      `[grpc]\naddress = "${socket}"\n`,
  );
  const daemon = Bun.spawn(["containerd", "--config", file], { stdin: "ignore", stdout: log, stderr: log });
  daemon.unref();
  const answers = () => Bun.spawnSync(["ctr", "-a", socket, "version"], { stdout: "ignore", stderr: "ignore" });
  for (const deadline = Date.now() + 60_000; answers().exitCode !== 0;) {
    if (daemon.exitCode !== null || Date.now() > deadline) {
      throw new Error(`containerd does not start: ${await log.text()}`);
    }
    await Bun.sleep(50);
  }
}

/** Makes `path` a link to the folder. */
function point(path: string, folder: string): void {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { recursive: true, force: true });
  symlinkSync(folder, `${dirname(path)}/${basename(path)}`);
}

export const engines = {
  "podman-cni": podmanCni,
  "podman-netavark": podmanNetavark,
  containerd,
} satisfies Record<string, Engine>;
export type EngineName = keyof typeof engines;
