/**
 * Every rtnetlink verb on a real kernel, through a socket opened by libnl and by socket(2). Links are removed by the small
 * program that the build puts into ours, too.
 */
import { expect, test } from "bun:test";
import { nativePrograms } from "../../../compile/build.ts";
import { openMachine } from "../../support/machine.ts";

const architecture = process.arch === "arm64" ? "arm64" : "x64", natives = nativePrograms(architecture);

for (const opened of ["libnl", "raw"] as const) {
  test(`every verb of rtnetlink does what it says, through a socket opened by ${opened}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container();
    const { code, stdout, stderr } = await machine.run(
      [process.execPath, ...natives, `${import.meta.dir}/session.ts`, container.netnsPath],
      { env: { PATCHBAY_NETLINK: opened } },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      opened,
      bridge: { kind: "bridge", mac: "02:00:00:00:00:01", mtu: 1400, up: true },
      port: { hairpin: true, isolated: true, learning: false, state: 0, onBridge: true },
      byIoctl: [true, "02:00:00:00:00:01", null],
      hasPorts: [false, true],
      ports: ["vh"],
      inside: { mac: "02:00:00:00:00:02", index: true, up: false },
      added: ["added", "present", "added"],
      addresses: ["10.1.2.3/24", "fd00::2/64"],
      tentative: false,
      routes: [{ dst: "0.0.0.0/0", gateway: "10.1.2.1", priority: 7, mtu: 1300 }],
      routeGone: ["deleted", "absent"],
      rule: ["10.1.2.3/32"],
      ruleGone: ["deleted", "absent"],
      addressGone: ["deleted", "absent"],
      errors: [
        "RTM_NEWLINK vh: file exists",
        "RTM_NEWLINK x: operation not supported (Unknown device type)",
        "RTM_NEWLINK x: invalid argument (mtu less than device minimum)",
        expect.stringMatching(/^RTM_NEWROUTE 10\.0\.0\.1\/8: invalid argument/),
      ],
      absent: [null, null, "absent"],
      despiteForgery: "vh",
      removed: ["deleted", "absent", null, "deleted"],
      notRemoved: expect.stringMatching(/^RTM_DELLINK lo: operation not supported/),
    });
  });

  test(`whatever another process sends to a socket of ours does not get into it: opened by ${opened}`, async () => {
    await using machine = await openMachine();
    const { code, stdout, stderr } = await machine.run([process.execPath, `${import.meta.dir}/strangers.ts`], {
      env: { PATCHBAY_NETLINK: opened },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // Without what keeps it out, the same is received.
    expect(JSON.parse(stdout)).toEqual({
      "a stranger's own": "received",
      "for requests": "connection refused",
      "for netfilter": "connection refused",
      "for notifications": "connection refused",
      "for notifications of netfilter": "connection refused",
    });
  });
}
