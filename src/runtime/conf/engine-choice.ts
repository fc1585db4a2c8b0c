/** The network that a kubelet's engine gives to every pod: it chooses by file names, and a stray file is soon the first. */
import { exists, namesIn, readConfiguredFile } from "../../ffi/files.ts";
import { DEFAULT_CONFIG_DIRECTORY } from "../paths.ts";
import { listNetworkFiles, type NetworkFile } from "./directory.ts";

export interface EngineChoice {
  engine: string;
  directory: string;
  /** Undefined when it has no network, for the problem. */
  network?: string;
  path?: string;
  problem?: string;
  /** Files with networks that it does not give to pods. */
  passedOver: string[];
}

/** One for each engine that runs here and gives all its pods one network. */
export function engineChoices(): EngineChoice[] {
  return [...exists("/run/containerd/containerd.sock") ? ofContainerd() : [], ...ofCrio()];
}

const CONTAINERD = "/etc/containerd/config.toml";

/** go-cni takes the first file, and none when that cannot be read. */
function ofContainerd(): EngineChoice[] {
  const config = readConfiguredFile(CONTAINERD) ?? "";
  const isWithoutPods = /^\s*disabled_plugins\s*=\s*\[[^\]]*["'](?:cri|io\.containerd\.(?:grpc\.v1\.)?cri)["']/m;
  const most = valueIn(config, "max_conf_num") ?? "1";
  if (isWithoutPods.test(config) || most !== "1") return [];
  const directory = valueIn(config, "conf_dir") ?? DEFAULT_CONFIG_DIRECTORY, files = inOrder(directory);
  return [choice("containerd", directory, files[0], files)];
}

const CRIO = "/etc/crio";

/** ocicni passes over what it cannot read. */
function ofCrio(): EngineChoice[] {
  if (!exists("/run/crio/crio.sock") && !exists("/var/run/crio/crio.sock")) return [];
  const parts = exists(`${CRIO}/crio.conf.d`) ? namesIn(`${CRIO}/crio.conf.d`).sort() : [];
  const config = [`${CRIO}/crio.conf`, ...parts.map((name) => `${CRIO}/crio.conf.d/${name}`)]
    .map((path) => readConfiguredFile(path) ?? "").join("\n");
  const directory = valueIn(config, "network_dir") ?? DEFAULT_CONFIG_DIRECTORY, files = inOrder(directory);
  const named = valueIn(config, "cni_default_network"), usable = files.filter(({ network }) => network !== undefined);
  const chosen = named ? usable.find(({ network }) => network!.name === named) : usable[0];
  return [choice("CRI-O", directory, chosen, files)];
}

function choice(
  engine: string,
  directory: string,
  chosen: NetworkFile | undefined,
  files: NetworkFile[],
): EngineChoice {
  const passedOver = files.filter((file) => file !== chosen && file.network !== undefined).map(({ path }) => path);
  const path = chosen?.path, network = chosen?.network?.name;
  const why = chosen === undefined ? `no network is in ${directory}` : `${chosen.path}: ${chosen.problem}`;
  const problem = network === undefined ? why : undefined;
  return { engine, directory, network, path, problem, passedOver };
}

function inOrder(directory: string): NetworkFile[] {
  return exists(directory) ? listNetworkFiles(directory).sort((one, other) => one.path < other.path ? -1 : 1) : [];
}

/** The last value of a key, whichever table it is in: TOML's lines are enough for these. */
function valueIn(text: string, key: string): string | undefined {
  const lines = [...text.matchAll(new RegExp(`^\\s*${key}\\s*=\\s*["']?([^"'#\\n]*?)["']?\\s*(?:#.*)?$`, "gm"))];
  return lines.at(-1)?.[1];
}
