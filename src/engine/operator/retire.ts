/** What a network leaves on the host when nothing is attached to it any more: `patchbay network remove`. */
import type { Invocation } from "../../cni/invocation.ts";
import { asWritten, field, isObject } from "../../cni/json.ts";
import type { Host } from "../../contract/host.ts";
import type { Resource, Retired } from "../../contract/resource.ts";
import { loadPlugin } from "../../plugins/table.ts";
import { kindNames, loadKind } from "../../resources/table.ts";
import { openHost } from "../open-host.ts";
import { restate } from "../restating.ts";
import { openSession } from "../run.ts";

/** A plugin, and what it would get now. */
export interface ConfiguredPlugin {
  type: string;
  document: Record<string, unknown>;
}

/** With `isDryRun` nothing is changed, and the list is what would be removed. */
export function retireNetwork(network: string, plugins: readonly ConfiguredPlugin[], isDryRun: boolean): Retired[] {
  const opened = openHost("");
  try {
    const unread: Invocation = {
      command: "DEL",
      containerId: "",
      netnsPath: "",
      ifName: "",
      cniArgs: "",
      path: "",
      stdin: "",
    };
    const host = openSession().hostOf(opened, unread);
    const list = plugins.flatMap((plugin) => resourcesOf(plugin, unread, host));
    const shared = kindNames.flatMap((name) => {
      const kind = loadKind(name)!, specs = list.filter((one) => one.kind === kind).map(({ spec }) => spec);
      return kind.retire?.(network, specs, host, isDryRun) ?? [];
    });
    return [...shared, ...plugins.flatMap((plugin) => retirePlugin(plugin, isDryRun))];
  } finally {
    opened.close();
  }
}

/** Without names and addresses, which only an attachment has. Empty for foreign plugins and for what is refused. */
function resourcesOf({ type, document }: ConfiguredPlugin, unread: Invocation, host: Host): Resource<unknown>[] {
  try {
    const plugin = loadPlugin(type), conf = plugin?.validate(document);
    if (plugin === undefined || plugin.del !== undefined) return [];
    const invocation = { ...unread, ...asWritten(document) };
    return restate(
      { plugin: plugin.name, conf: conf!, invocation, prevResult: () => undefined, host },
      "undo",
      (at) => plugin.add(at),
    );
  } catch {
    return [];
  }
}

/** What the plugin keeps, or else its delegate or IPAM plugin. */
function retirePlugin({ type, document }: ConfiguredPlugin, isDryRun: boolean): Retired[] {
  const plugin = loadPlugin(type);
  if (plugin === undefined) return [];
  let conf;
  try {
    conf = plugin.validate(document);
  } catch {
    return [];
  }
  if (plugin.retire !== undefined) return plugin.retire(conf, isDryRun);
  const other = plugin.passedOn?.(conf);
  if (other !== undefined) return retirePlugin({ type: other.type, document: other.conf }, isDryRun);
  const ipam = field(document, "ipam"), ipamType = isObject(ipam) ? field(ipam, "type") : undefined;
  return typeof ipamType === "string" && ipamType !== type
    ? retirePlugin({ type: ipamType, document }, isDryRun)
    : [];
}
