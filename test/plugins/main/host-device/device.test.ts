/** Which device a configuration names, and how it is found among the host's links. */
import { describe, expect, test } from "bun:test";
import type { Host } from "../../../../src/contract/host.ts";
import { ENODEV } from "../../../../src/ffi/errno.ts";
import { RTM_NEWLINK } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import {
  chosenDevice,
  configuredDevice,
  type DeviceChoice,
  findDevice,
  isForDpdk,
  missingHardware,
} from "../../../../src/plugins/main/host-device/device.ts";
import type { HostDeviceConf } from "../../../../src/plugins/main/host-device/host-device.schema.ts";
import { answering, bodyOf, type FakeKernel, refusing, socketTo } from "../../../ffi/netlink/fake-kernel.ts";

const nothing = { device: "", hwaddr: "", kernelpath: "", pciBusID: "" };
const conf = (written: object) => ({ ...nothing, ...written }) as HostDeviceConf;
const choice = (chosen: Partial<DeviceChoice>): DeviceChoice => ({
  name: "",
  hardwareAddress: "",
  kernelPath: "",
  pciAddress: "",
  auxiliary: "",
  ...chosen,
});

describe("configured", () => {
  test("is any of the keys, or none", () => {
    expect(configuredDevice(conf({}))).toBeUndefined();
    expect(() => chosenDevice(conf({}))).toThrow('specify either "device", "hwaddr", "kernelpath" or "pciBusID"');
    expect(chosenDevice(conf({ device: "eth0" }))).toEqual(choice({ name: "eth0" }));
    expect(configuredDevice(conf({ hwaddr: "x" }))).toEqual(choice({ hardwareAddress: "x" }));
    expect(configuredDevice(conf({ kernelpath: "/sys" }))).toEqual(choice({ kernelPath: "/sys" }));
    expect(configuredDevice(conf({ pciBusID: "0000:00:1f.6" }))).toEqual(choice({ pciAddress: "0000:00:1f.6" }));
  });

  test("by a name of sysfs, which is one word of a path", () => {
    for (const name of ["a/b", ".", "..", "a\0"]) {
      const isNone = `${JSON.stringify(name)} is not the name of a device`;
      expect(() => configuredDevice(conf({ pciBusID: name }))).toThrow(`"pciBusID": ${isNone}`);
      expect(() => configuredDevice(conf({ runtimeConfig: { deviceID: name } }))).toThrow(
        `"runtimeConfig.deviceID": ${isNone}`,
      );
    }
    expect(() => configuredDevice(conf({ device: "eth0", runtimeConfig: { deviceID: "none" } }))).toThrow(
      "runtime config DeviceID none not found or unsupported",
    );
    expect(configuredDevice(conf({ device: "eth0", runtimeConfig: {} }))).toEqual(choice({ name: "eth0" }));
  });
});

const links = [
  bodyOf("00000100 02000000 00000000 00000000", { 3: "657468300000", 1: "020000000001" }),
  bodyOf("00000100 03000000 00000000 00000000", { 3: "657468310000", 1: "020000000002" }),
];
const hostOf = (kernel: FakeKernel) => ({ route: socketTo(kernel) }) as unknown as Host;
const host = hostOf(answering(RTM_NEWLINK, ...links));

describe("found", () => {
  const details = (work: () => unknown) => {
    try {
      return work();
    } catch (error) {
      return [(error as Error).message, (error as { details?: string }).details];
    }
  };
  const notFound = "failed to find host device: failed to find physical interface";

  test("by its name before anything else", () => {
    expect(findDevice(choice({ name: "eth1", hardwareAddress: "x" }), host).name).toBe("eth1");
    expect(details(() => findDevice(choice({ name: "eth9" }), hostOf(refusing(ENODEV))))).toEqual([
      notFound,
      'no link is called "eth9"',
    ]);
  });

  test("by its hardware address, however that is written", () => {
    const by = (hardwareAddress: string) => findDevice(choice({ hardwareAddress, kernelPath: "/x" }), host).index;
    expect([by("02:00:00:00:00:02"), by("02-00-00-00-00-02"), by("02:00:00:00:00:01")]).toEqual([3, 3, 2]);
    expect(details(() => by("02:00:00:00:00:03"))).toEqual([
      notFound,
      "no link has the hardware address 02:00:00:00:00:03",
    ]);
    const eight = "02:00:00:00:00:00:00:03", twenty = Array(20).fill("02").join(":");
    for (const long of [eight, twenty]) {
      expect(details(() => by(long))).toEqual([notFound, `no link has the hardware address ${long}`]);
    }
    expect(() => by("x")).toThrow('failed to parse MAC address "x": address x: invalid MAC address');
  });

  test("by its path in sysfs, and no other path", () => {
    for (const kernelPath of ["/sys/class", "/sys/devices/../class", "sys/devices/x"]) {
      expect(() => findDevice(choice({ kernelPath, pciAddress: "x" }), host)).toThrow(
        `kernel device path "${kernelPath}" must be absolute and begin with /sys/devices/`,
      );
    }
    const kernelPath = "/sys/devices/none";
    expect(details(() => findDevice(choice({ kernelPath }), host))).toEqual([
      notFound,
      `${kernelPath}/net names no link`,
    ]);
    expect(() => findDevice(choice({ pciAddress: "none", auxiliary: "x" }), host)).toThrow(
      "failed to find host device: no net directory under pci device none",
    );
    expect(details(() => findDevice(choice({ auxiliary: "none" }), host))).toEqual([
      notFound,
      "/sys/bus/auxiliary/devices/none/net names no link",
    ]);
  });
});

test("hardware that is not there has a path that is missing, if it is named by one", () => {
  const pci = "/sys/bus/pci/devices/none";
  expect(missingHardware(choice({ name: "eth0", pciAddress: "none" }))).toBeUndefined();
  expect(missingHardware(choice({ hardwareAddress: "x", pciAddress: "none" }))).toBeUndefined();
  expect(missingHardware(choice({ kernelPath: "/sys/devices/none", pciAddress: "none" }))).toBe("/sys/devices/none");
  expect(missingHardware(choice({ kernelPath: "/sys/devices" }))).toBeUndefined();
  expect(missingHardware(choice({ pciAddress: "none" }))).toBe(pci);
  expect(missingHardware(choice({ auxiliary: "none" }))).toBeUndefined();
});

test("a program drives the device as its driver says, else as it is configured", () => {
  expect([isForDpdk(choice({}), true), isForDpdk(choice({}), false)]).toEqual([true, false]);
  expect(() => isForDpdk(choice({ pciAddress: "none" }), true)).toThrow(
    "error with host device: /sys/bus/pci/devices/none/driver: no such file or directory",
  );
});
