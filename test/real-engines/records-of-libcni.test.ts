/**
 * What Go's plugins made for an engine with a libcni that records no path of the namespace (before 1.2), as Debian's
 * does: our commands find the namespace by the result, look at it, mend it, and remove what is left when it has ended.
 */
import { expect, test } from "bun:test";
import { GoEngine } from "../support/engines/go-engine.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, openMachine } from "../support/machine.ts";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";

const POD = { IgnoreUnknown: "1", K8S_POD_NAMESPACE: "shop", K8S_POD_NAME: "till" };
const portMappings = [{ hostPort: 8080, containerPort: 80, protocol: "tcp", hostIP: "" }];
const gateway = "10.1.0.1", ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipam };
const portmap = { type: "portmap", capabilities: { portMappings: true } };

const forms = [
  { name: "1.0.0, a chain", cniVersion: "1.0.0", plugins: [bridge, portmap, { type: "firewall" }] },
  { name: "0.4.0, point to point", cniVersion: "0.4.0", plugins: [{ type: "ptp", ipMasq: true, ipam }] },
  { name: "0.3.1, of which there is no CHECK", cniVersion: "0.3.1", plugins: [bridge, portmap] },
  { name: "0.2.0, whose results name no links", cniVersion: "0.2.0", plugins: [bridge, portmap] },
];

test.each(forms.map((form) => [form.name, form] as const))("a network of version %s", async (_, form) => {
  const { cniVersion, plugins } = form, list = { cniVersion, name: "net", plugins };
  const isNamed = cniVersion !== "0.2.0", hasCheck = cniVersion === "1.0.0" || cniVersion === "0.4.0";
  await using machine = await openMachine();
  await machine.sh("mkdir /run/networks; cat >/run/networks/net.conflist", { stdin: JSON.stringify(list) });
  const patchbay = (...words: string[]) =>
    machine.run([PATCHBAY, ...words], { env: { NETCONFPATH: "/run/networks", CNI_PATH: patchbayPlugins() } });
  await using libcni = new GoEngine(machine, { library: "libcni", plugins: [GO_PLUGINS], networks: [list] });
  const call = (call: string, { netnsPath }: Container) =>
    libcni.one({ call, id: "box", netns: netnsPath, labels: POD, capabilities: { portMappings } });

  const first = await machine.container("first");
  expect(await call("add", first)).toEqual({ result: expect.anything() });
  expect(await call("del", first)).toEqual({});
  await machine.removeContainer(first);
  const moment = await quietMoment(machine);
  const container = await machine.container("c1");
  expect(await call("add", container)).toEqual({ result: expect.anything() });
  expect(await machine.sh("cat /var/lib/cni/results/*")).not.toContain('"netns"');
  const holder = machine.start(["nsenter", `--net=${container.netnsPath}`, "sleep", "infinity"]);
  await untilTrue(() => machine.sh("ip netns pids c1"), (pids) => pids !== "");
  const process = `pid:${(await machine.sh("ip netns pids c1")).trim()}`;

  const states = async (command: string, ...words: string[]) => {
    const { code, stdout } = await patchbay(command, ...words, "--json");
    // deno-lint-ignore no-explicit-any
    return [code, ...JSON.parse(stdout).map((one: any) => `${one.names[0]} ${one.netnsPath} ${one.state}`)];
  };
  for (const name of [process, container.netnsPath, "c1"]) {
    const path = isNamed
      ? container.netnsPath
      : name === "c1"
      ? "/run/netns/c1"
      : name.replace(/pid:(.*)/, "/proc/$1/ns/net");
    expect(await states("inspect", "net", name)).toEqual([0, `shop/till ${path} ok`]);
  }
  const byPod = await states("inspect", "net", "till");
  expect(byPod).toEqual(isNamed ? [0, `shop/till ${container.netnsPath} ok`] : [1, "shop/till  elsewhere"]);
  const told = (await patchbay("inspect", "net", "box")).stdout;
  if (!isNamed) expect(told).toContain("no record says which namespace it is in, so nothing is looked at\n");
  const checked = await patchbay("check", "net", "box");
  if (hasCheck) expect(checked).toEqual({ code: 0, stdout: "", stderr: "" });
  else expect(checked.stderr).toMatch(/does not support the CHECK command|no record says which namespace/);

  const flushed = isNamed ? "iptables -t nat -F; " : "";
  await machine.sh(`${flushed}ip link set $(ls /sys/class/net | grep veth) down`);
  expect((await states("inspect", "net", process))[0]).toBe(1);
  const repaired = await patchbay("repair", "net", process);
  if (isNamed) {
    expect(repaired.code).toBe(0);
    expect((await states("inspect", "net", process))[0]).toBe(0);
    expect(await ping(machine, container, gateway)).toBe(true);
  } else {
    expect(repaired.stdout).toContain("not mended: nothing proves that this namespace is the container's");
    // Addresses anybody can have: nobody is deleted by a namespace that has them.
    await patchbay("del", "net", process);
    expect((await patchbay("gc", "net")).stdout).toContain("container box (shop/till)");
  }
  expect((await patchbay("gc", "net", "--gone")).stderr).not.toContain("deleting");

  holder.kill();
  await holder.exited;
  await machine.removeContainer(container);
  const veths = () => machine.sh("ls /sys/class/net | grep veth || true");
  await untilTrue(veths, (links) => links === "");
  const remark = isNamed ? "its namespace is gone" : "no record shows whether its namespace is gone";
  expect((await patchbay("gc", "net")).stdout).toBe(
    `eth0 of container box (shop/till) from network net (${remark})\n`,
  );
  expect(await states("inspect", "net", "box")).toEqual([
    1,
    expect.stringContaining(isNamed ? " gone" : " elsewhere"),
  ]);
  const collected = await patchbay("gc", "--gone");
  if (isNamed) expect(collected.stderr).toBe("deleting eth0 of container box (shop/till) from network net\n");
  else {
    expect(collected.stderr).toContain(`${remark}; when it is, 'patchbay del net box' removes it\n`);
    expect(await patchbay("del", "net", "box")).toMatchObject({ code: 0 });
  }
  expect(await leftSince(moment, machine, /\.patchbay/)).toEqual([]);
});
