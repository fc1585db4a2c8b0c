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

/** What an agent keeps, with so many blocks. */
const keeping = (blocks: number) => {
  const grants = Array.from(
    { length: blocks },
    (_, index) => ({ key: `block/lan.${index}`, claim: "c", state: "held" }),
  );
  const state = JSON.stringify({ format: 1, generation: 1, boots: [], grants, seen: 0 });
  return `mkdir -m 700 -p /var/lib/patchbay/node; echo '${state}' >/var/lib/patchbay/node/state.json`;
};

test("an uninstall says which blocks this host still has, and asks no store", async () => {
  await using machine = await openMachine();
  await machine.sh("cp -a /etc /run/etc; mount --bind /run/etc /etc; mkdir -p /etc/patchbay");
  const install = await unitHost(machine, false);
  // Nobody listens there.
  const conf = { node: "n1", store: { etcd: { endpoints: ["http://127.0.0.1:1"] } } };
  await machine.sh(`echo '${JSON.stringify(conf)}' >/etc/patchbay/cluster.json`);
  expect((await install("--uninstall", "--dry-run")).stdout).toBe("");
  await machine.sh(keeping(0));
  expect((await install("--uninstall", "--dry-run")).stdout).toBe("");
  await machine.sh(keeping(1));
  const said = (blocks: string) =>
    `this host, node n1 of a cluster, has ${blocks} of addresses, which stay its own; if it leaves the cluster: ` +
    "'patchbay node drain n1' first, or afterwards 'patchbay node remove n1 --it-is-off' on another host\n";
  expect(await install("--uninstall", "--dry-run")).toMatchObject({ code: 0, stdout: said("1 block"), stderr: "" });
  await machine.sh(keeping(2));
  expect((await install("--no-resident")).stdout).not.toContain("block");
  const gone = await install("--uninstall");
  expect([gone.code, gone.stdout.split("\n")[0]]).toEqual([0, said("2 blocks").trim()]);
});

test("what cannot be read keeps nobody from uninstalling", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, false);
  await machine.sh(`${keeping(1)}; echo '{' >/var/lib/patchbay/node/state.json`);
  const { code, stdout } = await install("--uninstall", "--dry-run");
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining(
      "what this host has in a cluster of addresses is not known: /var/lib/patchbay/node/state.json",
    ),
  ]);
});
