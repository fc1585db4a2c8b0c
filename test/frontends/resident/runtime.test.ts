/** The runtime through a resident: its commands are served, but for networks whose plugins may wait for others. */
import { expect, test } from "bun:test";
import { startBus, startFirewalld, startHungBus } from "../../support/firewalld.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { statusOf } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { openServing, traceOf, untilServed } from "../../support/served.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const CONFIGS = "/run/networks";
const ipam = { type: "host-local", subnet: "10.1.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
const formerIpam = { type: "host-local", subnet: "10.2.0.0/24" };

async function writeNetwork(machine: Machine, name: string, plugins: unknown[]) {
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name, plugins });
  await machine.sh(`mkdir -p ${CONFIGS} && cat >${CONFIGS}/${name}.conflist`, { stdin });
}

test("the runtime's commands are served, and what they may wait for is left to them", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const plugins = [{ type: "bridge", isDefaultGateway: true, ipMasq: true, ipam }, {
    type: "portmap",
    capabilities: { portMappings: true },
  }];
  await writeNetwork(machine, "web", plugins);
  await writeNetwork(machine, "other", [{ type: "bridge", ipam }, { type: "foreign" }]);
  await machine.sh(`mkdir /run/plugins && printf '#!/bin/sh\ncat >/dev/null\necho "{}"\n' >/run/plugins/foreign`);
  await machine.sh(
    `chmod +x /run/plugins/foreign; for name in bridge host-local; do ln -s ${PATCHBAY} /run/plugins/$name; done`,
  );
  const env = { NETCONFPATH: CONFIGS, CAP_ARGS: '{"portMappings":[{"hostPort":8080,"containerPort":80}]}' };
  const words = (verb: string) => [verb, "--container-id", "c1", "web", container.netnsPath];
  const other = ["--container-id", "c1", "other", container.netnsPath];
  const foreign = { env: { ...env, CNI_PATH: "/run/plugins" } };
  for (const verb of ["add", "del"]) expect(await traceOf(machine, { env }, words(verb))).toBe("alone");
  for (const verb of ["add", "del"]) expect(await traceOf(machine, foreign, [verb, ...other])).toBe("alone");
  const moment = await quietMoment(machine);
  await using _resident = await openServing(machine);
  const told: [string, string][] = [];
  const ofNetwork = (verb: string) =>
    verb === "status" ? [verb, "web"] : /inspect|lint/.test(verb) ? [verb] : words(verb);
  for (const verb of ["plan", "add", "check", "inspect", "status", "del", "lint"]) {
    told.push([verb, await traceOf(machine, { env }, ofNetwork(verb))]);
    if (verb === "add") expect(await machine.sh("nft list ruleset")).toContain("8080");
  }
  expect(told.filter(([, how]) => how !== "served")).toEqual([]);
  expect(await traceOf(machine, foreign, ["add", ...other])).toBe("alone");
  await machine.sh("ip link show eth0", { in: container });
  // The foreign plugin stands last, so its DEL comes first: it finds the link in the worker's caller, too.
  await machine.sh("cat >/run/plugins/foreign", {
    stdin: '#!/bin/sh\ncat >/dev/null; ip netns exec ${CNI_NETNS##*/} ip -br link show eth0 >>/run/seen; echo "{}"\n',
  });
  expect(await traceOf(machine, foreign, ["del", ...other])).toBe("alone");
  expect(await machine.sh("cat /run/seen")).toStartWith("eth0");
  await machine.sh("rm /run/seen");
  // ADD is left before the chain's first plugin, so that nothing is made, undone and made again.
  expect((await statusOf(machine)).declined).toEqual({ "foreign plugin": 1, "another program": 1 });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("what calls may wait for counts where the host has it", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await using _resident = await openServing(machine);
  const statusBy = (plugin: string) => () => {
    const conf = { cniVersion: "1.1.0", name: "net", type: plugin, ipam };
    const env = environmentOf(patchbayPlugins(), { plugin, command: "STATUS", conf, container });
    return machine.run([`${patchbayPlugins()}/${plugin}`], { env, stdin: JSON.stringify(conf) });
  };
  const runtime = (...words: string[]) => () => machine.run([PATCHBAY, ...words], { env: { NETCONFPATH: CONFIGS } });
  const calls = {
    firewall: statusBy("firewall"),
    bridge: statusBy("bridge"),
    inspect: runtime("inspect"),
    ls: runtime("ls"),
    "gc of a network without a file": runtime("gc", "former", "--gone", "--dry-run"),
    "del of nothing, from a network without a file": runtime("del", "former", "c1", "-i", "eth9"),
    "inspect of what waits for nobody": runtime("inspect", "install"),
    "a network named as a command": runtime("check", "install", "c1", "-i", "lo"),
    install: runtime("install"),
  };
  // On a busy machine a call may have run by itself.
  const outcomes = async (names: readonly string[] = Object.keys(calls)) => {
    const told: Record<string, string | undefined> = {};
    for (const [name, call] of Object.entries(calls).filter(([name]) => names.includes(name))) {
      const before = await statusOf(machine);
      const [outcome] = await untilTrue(async () => {
        await call();
        const { served, declined } = await statusOf(machine);
        const reasons = Object.keys(declined).filter((reason) => declined[reason] !== before.declined[reason]);
        return served > before.served ? [...reasons, "served"] : reasons;
      }, ({ length }) => length > 0);
      told[name] = outcome;
    }
    return told;
  };
  await writeNetwork(machine, "install", [{ type: "loopback" }]);
  await writeNetwork(machine, "walled", [{ type: "bridge", bridge: "walled0", ipam }, { type: "firewall" }]);
  await writeNetwork(machine, "former", [{ type: "bridge", bridge: "former0", ipam: formerIpam }, {
    type: "firewall",
  }]);
  for (const [network, link] of [["install", "lo"], ["walled", "eth0"], ["former", "eth1"]] as const) {
    expect(await runtime("add", network, "c1", "-i", link)()).toMatchObject({ code: 0, stderr: "" });
  }
  await machine.sh(`rm ${CONFIGS}/former.conflist`);
  const served = {
    firewall: "served",
    bridge: "served",
    inspect: "served",
    ls: "served",
    "gc of a network without a file": "command",
    "del of nothing, from a network without a file": "served",
    "inspect of what waits for nobody": "served",
    "a network named as a command": "served",
    install: "command",
  };
  const waiting = { ...served, firewall: "firewalld", ls: "firewalld" };
  expect(await outcomes()).toEqual(served);
  {
    await using _bus = await startBus(machine);
    // On a busy machine the bus may not answer in time.
    expect(await untilTrue(() => outcomes(), (told) => Bun.deepEquals(told, served))).toEqual(served);
    await using _firewalld = await startFirewalld(machine);
    expect(await outcomes()).toEqual(waiting);
  }
  for (const state of ["silent", "full"] as const) {
    await using _bus = await startHungBus(machine, state);
    expect(await outcomes(["firewall"])).toEqual({ firewall: "firewalld" });
    // Where /var/run is a directory of its own, programs look for the bus there.
    await machine.sh("mount -t tmpfs tmpfs /var; mkdir -p /var/lib /var/run");
    expect(await outcomes(["firewall"])).toEqual({ firewall: "served" });
    await machine.sh("umount /var");
  }
  await machine.sh("rm /run/dbus/system_bus_socket; ip6tables-legacy -t filter -L");
  const legacy = "legacy iptables";
  expect(await outcomes()).toEqual({ ...served, firewall: legacy, bridge: legacy });
});

test("a command that would wait for another operation on the container waits in its caller's process", async () => {
  await using machine = await openMachine();
  await machine.container("c1");
  await writeNetwork(machine, "slow", [{ type: "foreign" }]);
  await writeNetwork(machine, "quick", [{ type: "loopback" }]);
  await machine.sh("mkdir /run/plugins");
  const foreign = "#!/bin/sh\n: >/run/begun\nwhile test -e /run/hold; do sleep 0.02; done\ncat >/dev/null\necho {}\n";
  await machine.sh(`ln -s ${PATCHBAY} /run/plugins/loopback; : >/run/hold`);
  await machine.sh("cat >/run/plugins/foreign; chmod +x /run/plugins/foreign", {
    stdin: foreign,
  });
  const env = { NETCONFPATH: CONFIGS, CNI_PATH: "/run/plugins" };
  await using _resident = await openServing(machine);
  const first = machine.run([PATCHBAY, "add", "slow", "c1"], { env });
  await machine.sh("until test -e /run/begun; do sleep 0.02; done");
  const second = machine.run([PATCHBAY, "add", "quick", "c1", "-i", "lo"], { env });
  await untilTrue(async () => (await statusOf(machine)).declined["another operation"], (count) => count === 1);
  await machine.sh("rm /run/hold");
  expect((await first).code).toBe(0);
  expect(await second).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("waiting for another operation on"),
  });
});

test("what an ADD with another configuration made is removed by the caller, where that may wait", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const foreign = `#!/bin/sh
    cat >/dev/null
    echo $CNI_COMMAND >>/run/called
    until test -e /run/go; do sleep 0.02; done
    echo '{"cniVersion":"1.1.0","ips":[{"address":"10.3.0.2/24"}]}'`;
  await machine.sh(
    `mkdir /run/plugins; ln -s ${PATCHBAY} /run/plugins/macvlan; ln -s ${PATCHBAY} /run/plugins/host-local
    ln -s ${PATCHBAY} /run/plugins/bridge; cat >/run/plugins/foreign; chmod +x /run/plugins/foreign; : >/run/go`,
    {
      stdin: foreign,
    },
  );
  const env = { NETCONFPATH: CONFIGS, CNI_PATH: "/run/plugins" }, formerly = { type: "foreign" };
  const plugin = (command: string, more: object) => {
    const conf = { cniVersion: "1.1.0", name: "net", type: "bridge", ...more };
    const variables = environmentOf("/run/plugins", { plugin: "bridge", command, conf, container });
    return machine.run(["/run/plugins/bridge"], { env: variables, stdin: JSON.stringify(conf) });
  };
  const removals = {
    DEL: () => plugin("DEL", { ipam }),
    GC: () => plugin("GC", { ipam, "cni.dev/valid-attachments": [] }),
    del: () => machine.run([PATCHBAY, "del", "net", "c1"], { env }),
  };
  await using _resident = await openServing(machine, 1);
  // The bridge stays.
  for (const command of ["ADD", "DEL"]) expect((await plugin(command, { ipam })).code).toBe(0);
  const before = await quietMoment(machine);
  for (const [name, remove] of Object.entries(removals)) {
    expect([name, (await plugin("ADD", { ipam: formerly })).code]).toEqual([name, 0]);
    await writeNetwork(machine, "net", [{ type: "bridge", ipam }]);
    await machine.sh("rm -f /run/go /run/called");
    const removal = remove();
    await machine.sh("until test -e /run/called; do sleep 0.02; done");
    // The only worker has time for others.
    await untilServed(machine);
    await machine.sh(": >/run/go");
    expect([name, await removal]).toEqual([name, expect.objectContaining({ code: 0 })]);
    expect([name, await machine.sh("cat /run/called")]).toEqual([name, "DEL\n"]);
    expect(await leftSince(before, machine, /serve[.~]|\.lock|\/run\/(called|go|networks)/)).toEqual([]);
  }
});
