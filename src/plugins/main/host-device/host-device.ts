/**
 * host-device: lends a device of the host to the container. DEL moves it back.
 *
 * Behaviour follows the reference plugin `plugins/main/host-device` (CNI spec 1.1.0). Owns in the kernel: nothing. The
 * device belongs to the host. While it is in the container, its alias contains its name on the host, as with the
 * reference plugin.
 */
import {
  CniError,
  failureLines,
  INVALID_CONFIG,
  PLUGIN_NOT_AVAILABLE,
  undefinedOnError,
} from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { wantedFeatures } from "../../../ffi/ethtool.ts";
import type { Link } from "../../../ffi/netlink/route/link.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { freeIndex, lentLink } from "../../../resources/link/lent-link/lent-link.ts";
import { asFound } from "../../../resources/link/lent-link/spec.ts";
import {
  chosenDevice,
  configuredDevice,
  type DeviceChoice,
  findDevice,
  isForDpdk,
  missingHardware,
} from "./device.ts";
import { validateHostDeviceConf } from "./host-device.validate.gen.ts";
import type { Interface, IpConfig, Result } from "../../../cni/result.ts";
import { dnsOr } from "../../shared/ipam.ts";
import type { HostDeviceConf } from "./host-device.schema.ts";

export default definePlugin<HostDeviceConf>({
  name: "host-device",
  validate: validateHostDeviceConf,
  // The capability `deviceID` is not known before ADD.
  judge(conf, call) {
    // With a PCI address, the device's driver decides.
    if (conf.DPDKMode && configuredDevice(conf)?.pciAddress === "") refuseToCopyForDpdk(conf);
    if (call !== undefined) return void chosenDevice(conf);
    // ADD has the kernel's own words.
    if (configuredDevice(conf)?.name === "lo") throw new CniError(INVALID_CONFIG, '"device": lo cannot be moved');
  },
  missingCapability: (conf) => configuredDevice(conf) === undefined ? "deviceID" : undefined,
  add,
  isBesideHost: true,
  status(conf) {
    const choice = configuredDevice(conf), path = choice && missingHardware(choice);
    if (path !== undefined) throw new CniError(PLUGIN_NOT_AVAILABLE, `the host has no device ${path}`);
  },
  absentDevice(conf, host) {
    const choice = configuredDevice(conf);
    if (choice === undefined || isForDpdk(choice, conf.DPDKMode)) return undefined;
    return failureLines(() => findDevice(choice, host))[0];
  },
});

function add(at: Attachment<HostDeviceConf>): Result {
  const { conf, ifName } = at;
  // Undefined for a configuration that ADD would reject now: it may have changed since ADD.
  const choice = undefinedOnError(() => chosenDevice(conf));
  const moved = !((choice && at.examine(() => isForDpdk(choice, conf.DPDKMode))) ?? isForDpdkIfKnown(choice, conf));
  if (!moved) at.examine(() => refuseToCopyForDpdk(conf));
  const device = moved && choice ? at.examine(() => findDevice(choice, at.host)) : undefined;
  const index = device && freeIndex(at.host.container!.route, device.index);
  const interfaceNetwork = moved && conf.useInterfaceNetwork ? loadInterfaceNetwork() : undefined;
  // prevResult has it as if it were leased.
  const copied = interfaceNetwork && at.choose(
    () => device && interfaceNetwork.networkOn(device, index!, at),
    () => undefined,
  );
  const ipam = at.ipam(interfaceNetwork && true); // announced first, so released last, when nothing uses the addresses any more
  const mac = device?.mac ?? at.choose(() => "", (result) => insideOf(at, result)?.mac ?? "");
  const inside: Interface = { name: ifName, mac: mac || undefined, sandbox: at.netnsPath };
  if (moved) at.apply(lent(at, device, index, mac));

  const result: Result = { cniVersion: conf.cniVersion, interfaces: [inside] };
  const plain = { ifName, addresses: [], routes: [], sysctls: {}, detectDuplicates: false };
  const lease = ipam?.add() ?? (interfaceNetwork && at.choose(() => undefined, (result) => result));
  const { ips: leased = [], routes: given = [] } = lease ?? {};
  const routes = interfaceNetwork ? at.choose(() => given, () => given.map(interfaceNetwork.asExpected)) : given;
  const ips: IpConfig[] = [];
  for (const { address, gateway } of leased) ips.push({ address, gateway, interface: 0 });
  // The first address is the one that packets have by default: it stays the device's own.
  if (moved) at.apply(addressing({ ...plain, addresses: [...copied?.ips ?? [], ...ips], routes }));
  if (copied !== undefined) at.applyAll(copied.resources);
  if (lease === undefined && copied === undefined) return result;
  const { ips: own = [], routes: ownRoutes = [] } = copied ?? {};
  return { ...result, ips: [...ips, ...own], routes: [...routes, ...ownRoutes], dns: lease && dnsOr(conf, lease) };
}

function loadInterfaceNetwork() {
  return require("./interface-network.ts") as typeof import("./interface-network.ts");
}

function refuseToCopyForDpdk({ useInterfaceNetwork }: HostDeviceConf): void {
  if (!useInterfaceNetwork) return;
  throw new CniError(INVALID_CONFIG, "useInterfaceNetwork is not supported for dpdk-bound devices");
}

function lent(at: Attachment<HostDeviceConf>, device: Link | undefined, index: number | undefined, mac: string) {
  const { conf, ifName, netnsPath, network, containerId, host } = at;
  const where = { owner: { network, containerId, ifName }, netnsPath };
  if (device === undefined) return lentLink({ ...where, known: { name: conf.device, mac } });
  const netns = host.container!.cookie;
  // Undefined for a device that has none to ask for.
  const features = undefinedOnError(() => wantedFeatures(device.name));
  return lentLink({ ...where, netns, device: asFound(device, features), index });
}

function insideOf({ ifName }: Attachment<HostDeviceConf>, result: Result): Interface | undefined {
  return result.interfaces?.findLast(({ name, sandbox }) => name === ifName && sandbox);
}

function isForDpdkIfKnown(choice: DeviceChoice | undefined, conf: HostDeviceConf): boolean {
  // It may be gone from the bus, or have no driver.
  return choice !== undefined && undefinedOnError(() => isForDpdk(choice, conf.DPDKMode)) === true;
}
