/** The network that a kubelet's engine gives to every pod: it chooses by file names, and a stray file is soon the first. */
import { undefinedOnError } from "../../cni/error.ts";
import { field, isObject } from "../../cni/json.ts";
import { exists, identify, isDirectory, listDirectory, readConfiguredFile } from "../../ffi/files.ts";
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

/** One for each engine that runs here and gives all its pods one network, where its configuration says which for certain. */
export function engineChoices(): EngineChoice[] {
  return [...exists("/run/containerd/containerd.sock") ? ofContainerd() : [], ...ofCrio()];
}

type Table = Record<string, unknown>;

/** Parsing takes the square of a table's length. Real files have 20 KB at most. */
const MOST_BYTES = 128 * 1024;

/** A file of TOML, which is empty where there is none; undefined when what it says is not known. */
function tableAt(path: string): Table | undefined {
  const table = undefinedOnError(() => Bun.TOML.parse(readConfiguredFile(path, MOST_BYTES) ?? ""));
  return isObject(table) ? table : undefined;
}

function tableIn(table: Table, ...keys: string[]): Table | undefined {
  return keys.reduce<Table | undefined>((outer, key) => {
    const inner = outer && field(outer, key);
    return isObject(inner) ? inner : undefined;
  }, table);
}

const CONTAINERD = "/etc/containerd";

/** The plugin that has the table `cni`, by the version of the file. */
const CRI_PLUGINS: Record<number, string> = {
  1: "cri",
  2: "io.containerd.grpc.v1.cri",
  3: "io.containerd.cri.v1.runtime",
};

/** go-cni takes the first file, and none when that cannot be read. */
function ofContainerd(): EngineChoice[] {
  const config = tableAt(`${CONTAINERD}/config.toml`);
  if (config === undefined || hasImports(config)) return [];
  const names = Object.values(CRI_PLUGINS), disabled = field(config, "disabled_plugins");
  if (Array.isArray(disabled) && names.some((name) => disabled.includes(name))) return [];
  const own = CRI_PLUGINS[Number(field(config, "version") ?? 1)];
  const having = names.filter((name) => tableIn(config, "plugins", name, "cni") !== undefined);
  // Versions of containerd differ in what they make of a table that is not of the file's version.
  if (having.some((name) => name !== own)) return [];
  const cni = tableIn(config, "plugins", own ?? "", "cni") ?? {};
  const directory = directoryIn(cni, "conf_dir"), most = field(cni, "max_conf_num") ?? 1;
  if (directory === undefined || most !== 1) return [];
  const files = inOrder(directory);
  return [choice({ engine: "containerd", directory, files, chosen: files[0] })];
}

/** Patterns of files, which add to this one. Newer versions of containerd look into conf.d without being told. */
function hasImports(config: Table): boolean {
  const imports = field(config, "imports") ?? [`${CONTAINERD}/conf.d/*.toml`];
  if (!Array.isArray(imports)) return true;
  return imports.some((pattern) => {
    if (typeof pattern !== "string") return true;
    const path = pattern.startsWith("/") ? pattern : `${CONTAINERD}/${pattern}`;
    const cut = path.lastIndexOf("/"), place = path.slice(0, cut), name = path.slice(cut + 1), isPattern = /[*?[\\]/;
    if (isPattern.test(place)) return true;
    return isPattern.test(name) ? exists(place) && namesAt(place).length > 0 : exists(path);
  });
}

const CRIO = "/etc/crio", MOST_PARTS = 100;

/** ocicni passes over what it cannot read. */
function ofCrio(): EngineChoice[] {
  if (!exists("/run/crio/crio.sock") && !exists("/var/run/crio/crio.sock")) return [];
  const parts = exists(`${CRIO}/crio.conf.d`) ? namesAt(`${CRIO}/crio.conf.d`) : [];
  if (parts.length > MOST_PARTS) return [];
  const network: Table = {};
  for (const path of [`${CRIO}/crio.conf`, ...parts.map((name) => `${CRIO}/crio.conf.d/${name}`)]) {
    const config = tableAt(path);
    if (config === undefined) return [];
    Object.assign(network, tableIn(config, "crio", "network"));
  }
  const directory = directoryIn(network, "network_dir"), named = field(network, "cni_default_network") ?? "";
  if (directory === undefined || typeof named !== "string") return [];
  const files = inOrder(directory), usable = files.filter(({ network }) => network !== undefined);
  const chosen = named === "" ? usable[0] : usable.find(({ network }) => network!.name === named);
  return [choice({ engine: "CRI-O", directory, files, chosen, named })];
}

/** Undefined for what is no directory's name. */
function directoryIn(table: Table, key: string): string | undefined {
  const directory = field(table, key) ?? DEFAULT_CONFIG_DIRECTORY;
  return typeof directory === "string" && directory.startsWith("/") ? directory : undefined;
}

interface Choosing {
  engine: string;
  directory: string;
  files: NetworkFile[];
  chosen: NetworkFile | undefined;
  /** The network that the engine looks for, if it does so by name. */
  named?: string;
}

function choice({ engine, directory, files, chosen, named = "" }: Choosing): EngineChoice {
  const passedOver = files.filter((file) => file !== chosen && file.network !== undefined).map(({ path }) => path);
  const path = chosen?.path, network = chosen?.network?.name;
  const sought = named === "" ? "no network" : `no network ${JSON.stringify(named)}`;
  const why = chosen === undefined ? `${sought} is in ${directory}` : `${chosen.path}: ${chosen.problem}`;
  const problem = network === undefined ? why : undefined;
  return { engine, directory, network, path, problem, passedOver };
}

function inOrder(directory: string): NetworkFile[] {
  if (!undefinedOnError(() => isDirectory(identify(directory)))) return [];
  return listNetworkFiles(directory).sort((one, other) => one.path < other.path ? -1 : 1);
}

function namesAt(directory: string): string[] {
  return undefinedOnError(() => listDirectory(directory)) ?? [];
}
