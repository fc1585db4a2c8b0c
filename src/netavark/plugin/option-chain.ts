/** The plugins of a network without a file: `plugins=ptp,bandwidth` and `PLUGIN.KEY=VALUE`. */
import { errorText } from "../../cni/error.ts";
import { findPlugin } from "../../engine/delegation/find-plugin.ts";
import { isV6 } from "../../net/address.ts";
import { loadPlugin, pluginNames } from "../../plugins/table.ts";
import { ipamSchema, pluginSchema, type Schema } from "../../runtime/lint/schema.ts";
import { closestKey } from "../../runtime/spelling.ts";
import type { Network } from "../wire/netavark.schema.ts";
import { type Addressing, routesOf, staticIpam } from "./addressing.ts";
import { type Options, refused, type Setting } from "./options.ts";
import { typedValue } from "./typed-value.ts";

export interface PluginConf extends Record<string, unknown> {
  type: string;
}

/** What one attachment asks for. */
export interface Wanted {
  readonly addresses: readonly string[];
  readonly mac: string | undefined;
}

/** Of these the container is reached through the host, so its ports can be published and its packets filtered. */
const ROUTED = ["bridge", "ptp"];
/** The key for the host's link, which podman calls `network_interface`. */
const LINK_KEYS: Readonly<Record<string, string>> = {
  bridge: "bridge",
  "host-device": "device",
  ipvlan: "master",
  macvlan: "master",
  vlan: "master",
};
/** What a plugin may declare, and a container of podman may have. */
const CAPABILITIES = ["aliases", "dns", "ips", "mac", "portMappings"];
/** Of a plugin's configuration, what is not an option. */
const OWN_KEYS = ["args", "capabilities", "cniVersion", "ipam", "name", "prevResult", "runtimeConfig", "type"];

export function optionChain(
  podman: Network,
  options: Options,
  addressing: Addressing,
  path: string,
  wanted: Wanted,
): PluginConf[] {
  const { plugins } = options, main = plugins[0]!;
  plugins.forEach((plugin, index) => requirePlugin(plugin, index, options, path));
  const types = [...plugins, ...addressing.by === "nobody" ? [] : appended(podman, main, plugins)];
  for (const { plugin, key, value } of options.settings) {
    if (plugin !== "ipam" && !types.includes(plugin)) {
      throw refused(`${plugin}.${key}`, value, `${plugin} is not among the plugins ${types.join(", ")}`);
    }
  }
  const ipam = addressing.by === "nobody" ? undefined : ipamOf(podman, addressing, wanted.addresses);
  const ipamType = ipam === undefined ? "" : String(ipam["type"]);
  const chain = types.map((type) => pluginConf(type, type === main ? ipamType : "", options));
  const defaults = mainDefaults(podman, main, addressing), key = LINK_KEYS[main] ?? "";
  if (podman.network_interface && (chain[0]![key] ?? defaults[key]) !== defaults[key]) {
    throw refused(`${main}.${key}`, String(chain[0]![key]), `network_interface says "${podman.network_interface}"`);
  }
  Object.assign(chain[0]!, { ...defaults, ...chain[0], ...ipam && { ipam } });
  setMtu(chain, options);
  const takesMac = chain.some(({ capabilities }) => (capabilities as { mac?: true } | undefined)?.mac);
  // An ipvlan always has its master's.
  if (wanted.mac !== undefined && !takesMac && main !== "ipvlan") {
    chain.push({ type: "tuning", capabilities: { mac: true } });
  }
  return chain;
}

/** The host's link that the network is on. */
export function linkOf([main]: readonly PluginConf[]): string | undefined {
  const link = main?.[LINK_KEYS[main.type] ?? ""];
  return typeof link === "string" && link !== "" ? link : undefined;
}

function appended({ internal }: Network, main: string, plugins: readonly string[]): string[] {
  if (internal || !ROUTED.includes(main)) return [];
  return ["portmap", "firewall"].filter((type) => !plugins.includes(type));
}

function requirePlugin(type: string, index: number, { plugins }: Options, path: string): void {
  const refuse = (reason: string) => refused("plugins", plugins.join(","), reason);
  if (plugins.indexOf(type) !== index) throw refuse(`${type} stands there twice`);
  if (["dhcp", "host-local", "static"].includes(type)) {
    throw refuse(`${type} gives addresses to another plugin: use --opt ipam.type=${type}`);
  }
  if (path === "" && !pluginNames.includes(type)) {
    const others = "--opt pluginPath=DIRS finds others";
    throw refuse(`"${type}" is no plugin of patchbay; there are ${pluginNames.join(", ")}; ${others}`);
  }
  try {
    findPlugin(type, path);
  } catch (error) {
    throw refuse(errorText(error));
  }
  if (index === 0 && loadPlugin(type)?.missingPrevResult !== undefined) {
    throw refuse(`${type} changes what another plugin made, so it cannot be the first`);
  }
}

function pluginConf(type: string, ipamType: string, { settings }: Options): PluginConf {
  const schema = pluginSchema(type, ipamType);
  const uses = Object.keys(schema?.properties?.["runtimeConfig"]?.properties ?? {});
  // podman's own addresses have no prefix length, and `static` is told them by its configuration.
  const isUseful = (name: string) => CAPABILITIES.includes(name) && !(name === "ips" && ipamType === "static");
  const capabilities = Object.fromEntries(uses.filter(isUseful).map((name) => [name, true]));
  const conf: PluginConf = { type, ...uses.some(isUseful) && { capabilities } };
  const known = schema && keysOf(schema);
  for (const setting of settings) {
    if (setting.plugin === type) conf[setting.key] = valueOf(setting, known, `${type} has`);
  }
  return conf;
}

function keysOf({ properties = {} }: Schema): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties).filter(([key]) => !OWN_KEYS.includes(key) && !key.includes("/")),
  );
}

/** Nothing is known of the keys of plugins that are not ours. */
function valueOf(setting: Setting, known: Readonly<Record<string, Schema>> | undefined, subject: string): unknown {
  const { plugin, key, value } = setting, option = `${plugin}.${key}`;
  if (known !== undefined && !Object.hasOwn(known, key)) {
    const names = Object.keys(known), meant = closestKey(key, names);
    const hint = meant === undefined ? "" : `did you mean "${meant}"? `;
    throw refused(option, value, `there is no such key; ${hint}${subject} ${names.join(", ") || "no keys"}`);
  }
  try {
    return typedValue(value, known?.[key]);
  } catch (error) {
    throw refused(option, value, errorText(error));
  }
}

function ipamOf(
  podman: Network,
  addressing: Exclude<Addressing, { by: "nobody" }>,
  addresses: readonly string[],
): Record<string, unknown> {
  if (addressing.by === "podman") return staticIpam(podman, addresses);
  const { type, settings } = addressing, ipam: Record<string, unknown> = { type };
  const known = ipamSchema(type)?.properties;
  for (const setting of settings) ipam[setting.key] = valueOf(setting, known, `${type} has`);
  if (type === "host-local" && ipam["routes"] === undefined) {
    ipam["routes"] = [...routesOf(podman), ...podman.internal ? [] : familiesOf(ipam).map((dst) => ({ dst }))];
  }
  return ipam;
}

/** The default route of each family that the ranges have. */
function familiesOf(ipam: Readonly<Record<string, unknown>>): string[] {
  const { subnet, ranges } = ipam as { subnet?: unknown; ranges?: unknown[] };
  const all = [{ subnet }, ...(ranges ?? []).flat()] as ({ subnet?: unknown } | null)[];
  const families = new Set(all.flatMap((range) => typeof range?.subnet === "string" ? isV6(range.subnet) : []));
  return [...families].map((v6) => v6 ? "::/0" : "0.0.0.0/0");
}

/** Explicit settings win over these. */
function mainDefaults(podman: Network, main: string, addressing: Addressing): Record<string, unknown> {
  const { internal, network_interface: link } = podman, key = LINK_KEYS[main];
  if (link && key === undefined) {
    throw new Error(`network_interface "${link}": the plugin ${main} has no link on the host that can be named`);
  }
  const isRouted = !internal && addressing.by !== "nobody" &&
    !(addressing.by === "plugin" && addressing.type === "dhcp");
  switch (main) {
    case "bridge":
      return { bridge: link || bridgeName(podman), isGateway: isRouted, ipMasq: isRouted, hairpinMode: true };
    case "ptp":
      return { ipMasq: isRouted };
  }
  return link ? { [key!]: link } : {};
}

/** Each network has its own: bridges of the same name would have the gateways of both. */
function bridgeName({ id }: Network): string {
  return `cni-${id.slice(0, 11)}`;
}

function setMtu(chain: readonly PluginConf[], { mtu }: Options): void {
  if (mtu === undefined) return;
  for (const conf of chain) {
    const schema = pluginSchema(conf.type, "")?.properties?.["mtu"];
    if (schema === undefined) continue;
    if (conf["mtu"] !== undefined) throw refused("mtu", mtu, `${conf.type}.mtu=${String(conf["mtu"])} says it, too`);
    try {
      conf["mtu"] = typedValue(mtu, schema);
    } catch (error) {
      throw refused("mtu", mtu, errorText(error));
    }
    return;
  }
  throw refused("mtu", mtu, `no plugin of the network has an MTU; add tuning to plugins`);
}
