/** `patchbay install --node`: a unit that no socket starts. No systemd runs: see install-dhcp.test.ts. */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { unitHost } from "../support/unit-host.ts";

const UNIT = "/etc/systemd/system/patchbay-node.service";

test("writes a unit that systemd understands, starts it, and removes it again", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  const first = await install("--node", "--no-resident");
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.stdout).toContain(`${UNIT}: installed\n`);
  const enabled = "enable --now patchbay-node.service";
  expect(first.asked).toEqual(["daemon-reload", enabled, "try-restart patchbay-node.service"]);
  expect(await machine.run(["systemd-analyze", "verify", UNIT])).toEqual({ code: 0, stdout: "", stderr: "" });
  const security = ["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=30", UNIT];
  const rated = await machine.run(security);
  expect([rated.code, rated.stdout]).toEqual([
    0,
    expect.stringContaining("exposure level for patchbay-node.service"),
  ]);
  expect(await machine.sh(`sed -n s/^ExecStart=//p ${UNIT}`)).toBe("/run/cni/patchbay node\n");
  expect((await install("--node", "--no-resident")).asked).toEqual([enabled]);
  expect(await install("--no-node")).toMatchObject({
    code: 0,
    asked: ["disable --now patchbay-node.service", "daemon-reload"],
  });
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
});

test("without systemd it says what to do instead", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, false);
  const { code, stdout, asked } = await install("--node", "--no-resident");
  expect([code, asked]).toEqual([0, []]);
  expect(stdout).toContain("  /run/cni/patchbay node\n\nIt may be killed at any moment; the next one goes on.\n");
});
