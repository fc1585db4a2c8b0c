/**
 * flannel: delegates to another plugin, by default bridge, with this node's subnets from flanneld.
 *
 * Behaviour follows the reference plugin `flannel-io/cni-plugin`. Owns in the kernel: nothing. Owns on disk: one file
 * for each container with the delegate's configuration, in the reference plugin's form. Only that file records the
 * subnets of ADD.
 */
import { CniError, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE, undefinedOnError } from "../../../cni/error.ts";
import { isObject } from "../../../cni/json.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { ENOTDIR, isErrno, SyscallError } from "../../../ffi/errno.ts";
import { entriesIn, removeFile } from "../../../ffi/files.ts";
import { readTrustedState } from "../../../process/state-file.ts";
import { delegation } from "../../../resources/delegated/delegation.ts";
import { validateFlannelConf } from "./flannel.validate.gen.ts";
import { readSubnetEnv, type SubnetEnv } from "./subnet-env.ts";
import type { Result } from "../../../cni/result.ts";
import type { FlannelConf } from "./flannel.schema.ts";

type Json = Record<string, unknown>;

export default definePlugin<FlannelConf>({
  name: "flannel",
  validate: validateFlannelConf,
  judge: checkDelegate,
  mayWaitFor: () => ["delegate"],
  add,
  check(at) {
    const file = fileOf(at.conf, at.containerId);
    return storedConf(file, at.network) === undefined ? [`${file} does not say how ${at.network} was attached`] : [];
  },
  status(conf) {
    try {
      readSubnetEnv(conf.subnetFile);
    } catch (error) {
      throw new CniError(PLUGIN_NOT_AVAILABLE, (error as Error).message, "", { cause: error });
    }
  },
  passedOn(conf) {
    const env = undefinedOnError(() => readSubnetEnv(conf.subnetFile));
    // Else the delegate's configuration is unknown: STATUS reports that, GC skips the delegate.
    return env && render(conf, env);
  },
  gc(conf, isValid) {
    for (const { name: containerId, kind } of entriesIn(conf.dataDir)) {
      const file = fileOf(conf, containerId);
      if (kind === "file" && !isValid({ containerId }) && storedConf(file, conf.name) !== undefined) removeFile(file);
    }
  },
});

function add(at: Attachment<FlannelConf>): Result {
  const { conf, containerId, network } = at;
  const keptIn = fileOf(conf, containerId);
  if (at.purpose === "make") {
    const { type, conf: rendered } = render(conf, readSubnetEnv(conf.subnetFile));
    return at.apply(delegation({ type, stdin: sortedJson(rendered), keptIn }));
  }
  const stored = storedConf(keptIn, network);
  if (stored === undefined) return { cniVersion: conf.cniVersion };
  at.apply(delegation({ ...stored, keptIn }));
  return at.prevResult ?? { cniVersion: conf.cniVersion };
}

function fileOf({ dataDir }: FlannelConf, containerId: string): string {
  return `${dataDir}/${containerId}`;
}

/** The stored configuration, if it belongs to this network: the file is named after the container alone. */
function storedConf(file: string, network: string): { type: string; stdin: string } | undefined {
  let stdin: string | undefined, document: unknown;
  try {
    stdin = readTrustedState(file);
    document = stdin && JSON.parse(stdin);
  } catch (error) {
    // Not JSON, or no directory. Other errors are thrown, because the file might be readable later.
    if (error instanceof SyscallError && !isErrno(error, ENOTDIR)) throw error;
    return undefined;
  }
  if (stdin === undefined || !isObject(document) || document.name !== network || typeof document.type !== "string") {
    return undefined;
  }
  return { type: document.type, stdin };
}

function checkDelegate({ delegate = {}, ipam = {} }: FlannelConf): void {
  for (const key of ["name", "ipam"]) {
    if (!Object.hasOwn(delegate, key)) continue;
    throw refused(`'delegate' dictionary must not have '${key}' field, it'll be set by flannel`);
  }
  const { type } = delegate;
  if (type !== undefined && typeof type !== "string") {
    throw refused("'delegate' dictionary, if present, must have (string) 'type' field");
  }
  if (type === "flannel") throw refused("'delegate' cannot be flannel itself");
  const { routes = [] } = ipam;
  if (!Array.isArray(routes)) throw refused(`"ipam.routes" must be a list, got ${JSON.stringify(routes)}`);
}

/** The delegate's configuration: `delegate` and `ipam` override what flannel would set. */
function render(conf: FlannelConf, env: SubnetEnv): { type: string; conf: Json } {
  const { delegate = {}, ipam = {}, runtimeConfig, name, cniVersion } = conf;
  const type = String(delegate["type"] ?? "bridge");
  const ranges: { subnet: string }[][] = [];
  for (const subnet of env.subnets) ranges.push([{ subnet }]);
  const routes: unknown[] = [...(ipam["routes"] as unknown[] | undefined) ?? []];
  for (const dst of env.networks) routes.push({ dst });
  const rendered: Json = { ipMasq: !env.ipMasq, mtu: env.mtu };
  if (type === "bridge") rendered.isGateway = true;
  Object.assign(rendered, delegate, { type, name, cniVersion });
  rendered.ipam = { type: "host-local", ...ipam, ranges, routes };
  if (runtimeConfig !== undefined) rendered.runtimeConfig = runtimeConfig;
  return { type, conf: rendered };
}

/** JSON as the reference plugin writes it: without spaces, keys sorted. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (!isObject(part)) return part;
    const copy: Json = {};
    for (const key of Object.keys(part).sort()) copy[key] = part[key];
    return copy;
  });
}

function refused(reason: string): CniError {
  return new CniError(INVALID_CONFIG, reason);
}
