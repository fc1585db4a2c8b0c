/**
 * `patchbay install --dhcp`: units for the DHCP service, under the reference plugin's names. No systemd runs: a script in
 * PATH writes down what systemctl is asked for, and systemd-analyze(1) reads the units.
 */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { unitHost } from "../support/unit-host.ts";

const UNITS = ["/etc/systemd/system/cni-dhcp.socket", "/etc/systemd/system/cni-dhcp.service"];
const REMOVED = ["disable --now cni-dhcp.socket cni-dhcp.service", "daemon-reload"];

test("writes units that systemd understands, starts the socket, and removes them again", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  const first = await install("--dhcp", "--no-resident");
  expect(first).toMatchObject({ code: 0, stderr: "" });
  for (const unit of UNITS) expect(first.stdout).toContain(`${unit}: installed\n`);
  expect(first.asked).toEqual(["daemon-reload", "enable --now cni-dhcp.socket", "try-restart cni-dhcp.service"]);
  expect(await machine.run(["systemd-analyze", "verify", ...UNITS])).toEqual({ code: 0, stdout: "", stderr: "" });
  // 38 is what the settings that do no harm come to; without any of them it is 96.
  const security = ["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=38", UNITS[1]!];
  const rated = await machine.run(security);
  expect([rated.code, rated.stdout]).toEqual([0, expect.stringContaining("exposure level for cni-dhcp.service")]);
  expect(await machine.sh(`sed -n s/^ListenStream=//p ${UNITS[0]}`)).toBe("/run/cni/dhcp.sock\n");
  expect(await machine.sh(`sed -n s/^ExecStart=//p ${UNITS[1]}`)).toBe("/run/cni/patchbay dhcp\n");
  expect((await install("--dhcp", "--no-resident")).asked).toEqual(["enable --now cni-dhcp.socket"]);
  const removed = await install("--no-dhcp");
  expect(removed).toMatchObject({ code: 0, asked: REMOVED });
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
  expect((await install("--no-dhcp")).asked).toEqual([]);
  expect((await install("--dhcp", "--no-dhcp")).code).toBe(2);
});

test("--uninstall removes the units that start the program, and no others", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await install("--dhcp", "--resident");
  await machine.sh(`${PATCHBAY} install /run/other && ${PATCHBAY} install --uninstall /run/other`);
  // Everybody may read them, as others' units.
  expect(await machine.sh("find /etc/systemd -type f -perm 644 | wc -l")).toBe("4\n");
  expect((await install("--uninstall")).asked).toEqual(expect.arrayContaining(REMOVED));
  expect(await machine.sh("find /etc/systemd /run/cni -type f")).toBe("");
});

test("where a package's socket listens at the same place, --dhcp and --resident are refused, and nothing is done", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true), packages = "/usr/lib/systemd/system";
  await machine.sh(
    `mount -t tmpfs tmpfs ${packages}; touch ${packages}/patchbay-dhcp.socket ${packages}/patchbay.socket`,
  );
  for (const [option, socket] of [["dhcp", "patchbay-dhcp.socket"], ["resident", "patchbay.socket"]] as const) {
    const refused = await install(`--${option}`);
    expect(refused).toMatchObject({ code: 1, stdout: "", asked: [] });
    expect(refused.stderr).toContain(`${packages}/${socket} is there`);
    expect(refused.stderr).toContain(
      `leave --${option} out (\`systemctl enable --now ${socket}\` starts the package's)`,
    );
  }
  expect(await machine.sh("find /etc/systemd /run/cni -type f 2>/dev/null || true")).toBe("");
  expect(await install()).toMatchObject({ code: 0, stderr: "", asked: [] });
  await machine.sh(`rm ${packages}/*`);
  expect((await install("--dhcp", "--resident")).asked).toContain("enable --now cni-dhcp.socket");
});

test("units of others stay; without systemd it says what to do instead", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await machine.sh(`mkdir -p /etc/systemd/system; echo mine >${UNITS[1]}`);
  const refused = await install("--dhcp", "--no-resident");
  expect(refused).toMatchObject({ code: 1, asked: [] });
  expect(refused.stderr).toContain(`${UNITS[1]} was not written by patchbay`);
  expect(await machine.sh(`cat ${UNITS[1]}`)).toBe("mine\n");
  await machine.sh(`rm -r ${UNITS[1]} /run/systemd`);
  const { code, stdout, asked } = await install("--dhcp", "--no-resident");
  expect({ code, asked }).toEqual({ code: 0, asked: [] });
  expect(stdout).toContain("systemd does not run here");
  expect(stdout).toContain("  /run/cni/patchbay dhcp\n");
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
});
