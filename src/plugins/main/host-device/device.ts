/**
 * Finds the host's device that a configuration names, like the reference plugin `host-device`: by name, by hardware
 * address or by path in sysfs (sysfs(5), Documentation/ABI/testing/sysfs-class-net).
 */
import { CniError, INTERNAL, INVALID_CONFIG } from "../../../cni/error.ts";
import { linkTarget } from "../../../ffi/directory-entries.ts";
import { exists, listDirectory } from "../../../ffi/files.ts";
import { getLink, type Link, listLinks } from "../../../ffi/netlink/route/link.ts";
import { formatMac, parseMac } from "../../../net/mac.ts";
import type { Host } from "../../../contract/host.ts";
import type { HostDeviceConf } from "./host-device.schema.ts";

const PCI_DEVICES = "/sys/bus/pci/devices";
const AUXILIARY_DEVICES = "/sys/bus/auxiliary/devices";
/** Drivers that give the device to a program instead of the kernel's network stack. */
const DPDK_DRIVERS = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/** The device as configured, including the capability `deviceID`. */
export interface DeviceChoice {
  name: string;
  hardwareAddress: string;
  kernelPath: string;
  pciAddress: string;
  auxiliary: string;
}

export function chosenDevice(conf: HostDeviceConf): DeviceChoice {
  const choice = configuredDevice(conf);
  if (choice !== undefined) return choice;
  throw new CniError(INVALID_CONFIG, `specify either "device", "hwaddr", "kernelpath" or "pciBusID"`);
}

/** Undefined when the configuration names none. A runtime may still name one by the capability `deviceID`. */
export function configuredDevice(conf: HostDeviceConf): DeviceChoice | undefined {
  const deviceId = conf.runtimeConfig?.deviceID ?? "";
  let pciAddress = conf.pciBusID, auxiliary = "";
  if (deviceId !== "") {
    checkSysfsName("runtimeConfig.deviceID", deviceId);
    if (exists(`${PCI_DEVICES}/${deviceId}`)) pciAddress = deviceId;
    else if (exists(`${AUXILIARY_DEVICES}/${deviceId}`)) [pciAddress, auxiliary] = ["", deviceId];
    else throw new CniError(INVALID_CONFIG, `runtime config DeviceID ${deviceId} not found or unsupported`);
  }
  if (pciAddress !== "") checkSysfsName("pciBusID", pciAddress);
  const { device: name, hwaddr: hardwareAddress, kernelpath: kernelPath } = conf;
  if (name === "" && hardwareAddress === "" && kernelPath === "" && pciAddress === "" && auxiliary === "") {
    return undefined;
  }
  return { name, hardwareAddress, kernelPath, pciAddress, auxiliary };
}

/** Whether a program drives the device, bypassing the kernel: then it has no link to move. */
export function isForDpdk({ pciAddress }: DeviceChoice, configured: boolean): boolean {
  if (pciAddress === "") return configured;
  const path = `${PCI_DEVICES}/${pciAddress}/driver`;
  const driver = linkTarget(path);
  if (driver === undefined) {
    throw new CniError(INTERNAL, `error with host device: ${path}: no such file or directory`, "it has no driver");
  }
  return DPDK_DRIVERS.includes(driver.slice(driver.lastIndexOf("/") + 1));
}

/** Uses the first key that is set: name, hardware address, sysfs path, PCI address, auxiliary device. */
export function findDevice(choice: DeviceChoice, host: Host): Link {
  const { name, hardwareAddress, kernelPath, pciAddress, auxiliary } = choice;
  if (name !== "") return byName(name, `no link is called "${name}"`, host);
  if (hardwareAddress !== "") return byHardwareAddress(hardwareAddress, host);
  const [path, found] = kernelPath !== ""
    ? [kernelPath, linksOf(checkedKernelPath(kernelPath))]
    : pciAddress !== ""
    ? [`${PCI_DEVICES}/${pciAddress}`, linksOfPci(pciAddress)]
    : [`${AUXILIARY_DEVICES}/${auxiliary}`, linksOf(`${AUXILIARY_DEVICES}/${auxiliary}`)];
  if (found.length === 0) throw notFound(`${path}/net names no link`);
  return byName(found[0]!, `${path}/net names "${found[0]}", which is in another network namespace`, host);
}

/** The path in sysfs that must exist before the device can be found, if it is missing. */
export function missingHardware({ name, hardwareAddress, kernelPath, pciAddress }: DeviceChoice): string | undefined {
  if (name !== "" || hardwareAddress !== "") return undefined;
  const path = kernelPath !== "" ? kernelPath : pciAddress !== "" ? `${PCI_DEVICES}/${pciAddress}` : undefined;
  return path === undefined || exists(path) ? undefined : path;
}

function byName(name: string, otherwise: string, host: Host): Link {
  const link = getLink(host.route, name);
  if (link === undefined) throw notFound(otherwise);
  return link;
}

function byHardwareAddress(text: string, host: Host): Link {
  const bytes = parseMac(text) ?? parseMac(text, 8) ?? parseMac(text, 20);
  if (bytes === undefined) {
    throw new CniError(
      INVALID_CONFIG,
      `failed to find host device: failed to parse MAC address "${text}": address ${text}: invalid MAC address`,
    );
  }
  const wanted = formatMac(bytes);
  for (const link of listLinks(host.route)) if (link.mac === wanted) return link;
  throw notFound(`no link has the hardware address ${wanted}`);
}

function checkedKernelPath(path: string): string {
  if (!path.startsWith("/sys/devices/") || path.split("/").includes("..")) {
    throw new CniError(
      INVALID_CONFIG,
      `failed to find host device: kernel device path "${path}" must be absolute and begin with /sys/devices/`,
    );
  }
  return path;
}

function linksOfPci(address: string): string[] {
  const path = `${PCI_DEVICES}/${address}`;
  if (exists(`${path}/net`)) return linksOf(path);
  for (const child of listDirectory(path)) {
    if (child.startsWith("virtio") && exists(`${path}/${child}/net`)) return linksOf(`${path}/${child}`);
  }
  throw new CniError(INTERNAL, `failed to find host device: no net directory under pci device ${address}`);
}

function linksOf(path: string): string[] {
  return listDirectory(`${path}/net`);
}

function notFound(details: string): CniError {
  return new CniError(INTERNAL, "failed to find host device: failed to find physical interface", details);
}

/** Rejects names that are no single path component. */
function checkSysfsName(key: string, name: string): void {
  if (!name.includes("/") && name !== "." && name !== ".." && !name.includes("\0")) return;
  throw new CniError(INVALID_CONFIG, `${JSON.stringify(key)}: ${JSON.stringify(name)} is not the name of a device`);
}
