/** Upgrade from Go's plugins and back: attachments of both on one host. */
import { expect, test } from "bun:test";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { openStage, type Stage } from "../../support/turns.ts";

const ipam = { type: "host-local", subnet: "10.20.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipam };
const ports = { type: "portmap", capabilities: { portMappings: true } };
const chain = { name: "chain", plugins: [bridge, ports, { type: "firewall" }] };

/** `plugin madeBy: kind state, …` for what is not right. */
async function seen(stage: Stage, command: "inspect" | "repair"): Promise<string[]> {
  const { stdout } = await stage.look(command);
  const [{ plugins }] = JSON.parse(stdout);
  // deno-lint-ignore no-explicit-any
  return plugins.map(({ plugin, madeBy, resources }: any) => {
    // deno-lint-ignore no-explicit-any
    const odd = resources.filter(({ state }: any) => state !== "ok").map(({ kind, state }: any) =>
      ` ${kind} ${state}`
    );
    return `${plugin} by ${madeBy}:${odd}`;
  });
}

const allRight = (maker: string) => [`bridge by ${maker}:`, `portmap by ${maker}:`, `firewall by ${maker}:`];

test.each(["ours DEL", "Go DEL"] as const)(
  "what Go's plugins made is shown, mended, and removed by %s",
  async (del) => {
    await using stage = await openStage(chain);
    const { machine } = stage;
    await stage.happen("Go ADD");
    expect(await seen(stage, "inspect")).toEqual(allRight("others"));
    expect((await machine.run([PATCHBAY, "inspect"])).stdout).toContain("portmap (made by another program)\n");
    const before = await machine.sh("iptables-save | grep -v '^#' | sed 's/\\[.*\\]//' | sort");

    await machine.sh("nft flush ruleset; ip link set br0 down");
    expect(await seen(stage, "inspect")).toEqual([
      "bridge by others: bridge differs, masquerade differs",
      "portmap by others: port-mappings differs",
      "firewall by others: firewall differs",
    ]);
    expect((await stage.look("repair")).code).toBe(0);
    expect(await seen(stage, "inspect")).toEqual(allRight("others"));
    expect(await machine.sh("iptables-save | grep -v '^#' | sed 's/\\[.*\\]//' | sort")).toBe(before);
    expect((await stage.patchbay("check")).code).toBe(0);

    expect(await stage.happen(del)).toBe(true);
    expect((await stage.host()).join("\n")).not.toMatch(/ctr|address#|veth#|patchbay_/);
    expect((await machine.run([PATCHBAY, "inspect"])).stdout).toBe("nothing is attached\n");
  },
);

test("a cached configuration may be a single plugin's; plugins that are not ours are left alone", async () => {
  await using stage = await openStage({ name: "one", plugins: [bridge] });
  const { machine } = stage;
  await stage.happen("Go ADD");
  const path = "/var/lib/cni/results/net-ctr-eth0";
  const record = JSON.parse(await machine.sh(`cat ${path}`));
  const write = (config: unknown) =>
    machine.run(["sh", "-c", `cat >${path}`], {
      stdin: JSON.stringify({ ...record, config: Buffer.from(JSON.stringify(config)).toString("base64") }),
    });
  await write({ cniVersion: "1.0.0", name: "net", ...bridge });
  expect(await seen(stage, "inspect")).toEqual(["bridge by others:"]);
  await write({ cniVersion: "1.0.0", name: "net", plugins: [bridge, { type: "calico" }] });
  expect(await seen(stage, "inspect")).toEqual(["bridge by others:", "calico by others:"]);
  await write({ cniVersion: "1.0.0", name: "net", plugins: [{ ...bridge, vlan: "none" }] });
  const [{ plugins }] = JSON.parse((await stage.look("inspect")).stdout);
  expect(plugins[0].resources[0].kind).toContain("what bridge made cannot be told");
  await write("no configuration");
  expect((await machine.run([PATCHBAY, "inspect"])).stderr).toContain("of container ctr cannot be read");
});

test("a cached result whose link is gone does not override the ledger", async () => {
  await using stage = await openStage(chain);
  await stage.happen("ours ADD");
  const path = "/var/lib/cni/results/net-ctr-eth0";
  await stage.machine.sh(
    `sed -i 's/"mac":"[0-9a-f:]*","name":"eth0"/"mac":"02:00:00:00:00:01","name":"eth0"/' ${path}`,
  );
  await stage.machine.sh(`sed -i 's/veth[0-9a-f]\\{8\\}/veth00000000/' ${path}`);
  expect(await seen(stage, "inspect")).toEqual([
    "bridge by patchbay:",
    "portmap by patchbay:",
    "firewall by patchbay:",
  ]);
});

test("an attachment that Go's plugins made again under another path counts, whatever the ledger says", async () => {
  await using stage = await openStage(chain);
  const { machine } = stage;
  await stage.happen("ours ADD");
  await stage.happen("Go DEL");
  await stage.endContainer();
  const anew = await machine.container("anew");
  const run = (...args: string[]) =>
    machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: "/run/net.d", CNI_PATH: GO_PLUGINS } });
  expect((await run("add", "net", anew.netnsPath, "--container-id", "ctr")).code).toBe(0);
  // Without ports.
  expect(await seen(stage, "inspect")).toEqual(["bridge by others:", "portmap by nobody:", "firewall by others:"]);
  expect((await run("gc", "net", "--gone")).stderr).toBe("");
  expect(await machine.sh("ip -br addr show eth0", { in: anew })).toContain("10.20.0.");
});

test("uninstalling prints what stays attached, and refuses when no plugin could remove it", async () => {
  await using stage = await openStage({ name: "chain", plugins: [bridge, { ...ports, backend: "nftables" }] });
  const { machine } = stage;
  const bin = "/run/bin";
  await machine.sh(`mkdir ${bin}; cp ${GO_PLUGINS}/* ${bin}; ${PATCHBAY} install ${bin}`);
  const uninstall = (...flags: string[]) => machine.run([PATCHBAY, "install", "--uninstall", ...flags, bin]);
  const program = () => machine.sh(`readlink ${bin}/bridge || echo Go`);

  await stage.happen("ours ADD");
  const refused = await uninstall();
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("1 of 1 recorded attachment has what no other plugin removes");
  expect(refused.stderr).toContain(
    "eth0 of container ctr in network net: its entries in table inet patchbay_portmap",
  );
  expect(await program()).toBe("patchbay\n");

  await machine.sh(`mv ${bin}/.patchbay-backup/bridge /run`);
  expect((await uninstall()).stderr).toContain("what bridge made, as no other bridge comes back");
  await machine.sh(`mv /run/bridge ${bin}/.patchbay-backup`);

  const forced = await uninstall("--force");
  expect(forced).toMatchObject({ code: 0, stderr: "" });
  expect(forced.stdout).not.toContain("come back remove");
  expect(forced.stdout).toContain("patchbay_portmap");
  expect(forced.stdout).toContain("plugins that come back may fail to delete");
  expect(await program()).toBe("Go\n");

  // What was told comes true.
  await stage.happen("Go DEL");
  const left = (await stage.host()).filter((line) => line.includes("ctr") && !line.includes("/run/patchbay/"));
  expect(left).toContainEqual(expect.stringContaining("tcp . 8080 comment"));
});

test("uninstalling goes on with published ports: what stays of them does no harm, and is told", async () => {
  await using stage = await openStage(chain);
  const { machine } = stage;
  await machine.sh(`mkdir /run/bin; cp ${GO_PLUGINS}/* /run/bin; ${PATCHBAY} install /run/bin`);
  await stage.happen("ours ADD");
  const { code, stdout, stderr } = await machine.run([PATCHBAY, "install", "--uninstall", "/run/bin"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("1 attachment stays; the plugins that come back remove what was made");
  expect(stdout).toContain(
    "next boot:\n  eth0 of container ctr in network net: its entries in table ip patchbay_localhost\n",
  );
  expect(await stage.happen("Go DEL")).toBe(true);
  const left = (await stage.host()).filter((line) => line.includes("ctr") && !line.includes("/run/patchbay/"));
  expect(left).toEqual([expect.stringContaining("id: ctr, if: eth0, net: net")]);
});

test("uninstalling works when the plugins that come back can remove everything", async () => {
  await using stage = await openStage({ name: "bridge", plugins: [bridge, { type: "firewall" }] });
  const { machine } = stage;
  await machine.sh(`mkdir /run/bin; cp ${GO_PLUGINS}/* /run/bin; ${PATCHBAY} install /run/bin`);
  await stage.happen("ours ADD");
  const outcome = await machine.run([PATCHBAY, "install", "--uninstall", "/run/bin"]);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toContain("1 attachment stays; the plugins that come back remove what was made");
  await stage.happen("Go DEL");
  const left = (await stage.host()).filter((line) => /ctr|address#|veth#/.test(line));
  expect(left.filter((line) => !line.includes("/run/patchbay/"))).toEqual([]);
});

test("uninstalling where no plugin comes back says only that nothing removes what stays", async () => {
  await using stage = await openStage({ name: "bridge", plugins: [bridge] });
  const { machine } = stage;
  await machine.sh(`mkdir /run/bin; ${PATCHBAY} install /run/bin`);
  await stage.happen("ours ADD");
  const { code, stdout } = await machine.run([PATCHBAY, "install", "--uninstall", "--force", "/run/bin"]);
  expect(code).toBe(0);
  expect(stdout).toContain(
    "nothing removes this before the next boot:\n  eth0 of container ctr in network net: ",
  );
  expect(stdout).not.toContain("come back remove");
});

test("after a second ADD without DEL, CHECK, inspect and repair go by the second", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const moment = await quietMoment(machine);
  await machine.sh("ip link add eth0 type veth peer name far", { in: container });
  const own = () => ({
    prevResult: { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: container.netnsPath }] },
  });
  const net = network(machine, { type: "tuning" }, patchbayPlugins(), { own });
  const mtu = async () => JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0].mtu;
  await net.add(container, { conf: { mtu: 1400 } });
  await net.add(container, { conf: { mtu: 1450 } });
  await net.check(container, { conf: { mtu: 1450 } });
  expect((await machine.run([PATCHBAY, "inspect"])).code).toBe(0);
  await machine.sh("ip link set eth0 mtu 1300", { in: container });
  expect((await net.call("CHECK", container, { conf: { mtu: 1450 } })).json.msg).toContain(
    "is 1450, current value is 1300",
  );
  expect((await machine.run([PATCHBAY, "repair"])).code).toBe(0);
  expect(await mtu()).toBe(1450);
  await net.del(container, { conf: { mtu: 1450 } });
  expect(await mtu()).toBe(1500);
  await machine.sh("ip link del eth0; rm /var/lib/cni/.patchbay.lock", { in: container });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("the ledger of an attachment that Go's plugins deleted does not keep rules from being removed", async () => {
  await using stage = await openStage(chain);
  const { machine } = stage;
  await stage.happen("ours ADD");
  await stage.happen("Go DEL");
  await stage.endContainer();
  const next = await machine.container("next");
  const own = () => ({
    prevResult: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "br0" }, { name: "eth0", sandbox: next.netnsPath }],
      ips: [{ address: "10.20.0.2/24", interface: 1 }],
    },
  });
  const conf = { type: "firewall", cniVersion: "1.0.0" };
  const given = (await machine.sh("cat /run/patchbay/net/ctr@eth0@firewall")).match(/"addresses":\["([^"]*)"/)![1];
  expect(given).toBe("10.20.0.2");
  // Rules of Go's do not say whose they are.
  await network(machine, conf, GO_PLUGINS, { own }).add(next);
  await network(machine, conf, patchbayPlugins(), { own }).del(next, { conf: own() });
  expect(await machine.sh("iptables-save")).not.toContain("10.20.0.2");
});

test("a plugin that has nothing to make is not said to be another program's", async () => {
  await using stage = await openStage({ name: "bare", plugins: [bridge, { type: "bandwidth" }] });
  await stage.happen("ours ADD");
  const { code, stdout } = await stage.machine.run([PATCHBAY, "inspect"]);
  expect(code).toBe(0);
  expect(stdout).toContain("  bandwidth (nothing to make)\n");
  expect(await seen(stage, "repair")).toEqual(["bridge by patchbay:", "bandwidth by nobody:"]);
});
