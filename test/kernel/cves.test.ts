/**
 * Holes that others in the field had, tried on the built program. docs/cves.md has a row for each, also for those that other
 * files try.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { expect, test } from "bun:test";
import { startService } from "../support/dhcp/service.ts";
import { serverBehindBridge } from "../support/dhcp/link.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { creation, ID } from "../support/netavark/creation.ts";
import { AARDVARK, daemons, ND } from "../support/netavark/names.ts";
import { netavarkProgram } from "../support/netavark/netavark.ts";
import { environmentOf, PATCHBAY, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { SOCKET, startResident } from "../support/resident.ts";
import { untilServed } from "../support/resident-status.ts";

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };

/** A program, not below CNI_PATH, that leaves a file when it runs. */
async function trap(machine: Machine): Promise<void> {
  await machine.sh(`mkdir -p /run/bin /run/traps; ln -s ${patchbayPlugins()}/* /run/bin
    printf '#!/bin/sh\\ntouch /run/sprung\\n' >/run/traps/trap; chmod +x /run/traps/trap`);
}

const paths = ["../traps/trap", "/run/traps/trap", "bridge/../../traps/trap", "./../traps/trap", "..", "."];
const places = {
  "a plugin of the network": (type: string) => ({ type }),
  "an IPAM plugin": (type: string) => ({ type: "bridge", ipam: { type } }),
  "flannel's delegate": (type: string) => ({ type: "flannel", delegate: { type } }),
};

test.each(Object.keys(places) as (keyof typeof places)[])(
  "CVE-2021-20206: a path as the type of %s is executed nowhere",
  async (place) => {
    await using machine = await openMachine();
    await trap(machine);
    const container = await machine.container("c1"), file = "/run/net.d/n.conflist";
    await machine.sh(`mkdir -p /run/net.d /run/flannel && : >${file}
      printf 'FLANNEL_NETWORK=10.2.0.0/16\nFLANNEL_SUBNET=10.2.1.1/24\nFLANNEL_MTU=1400\nFLANNEL_IPMASQ=true\n' >/run/flannel/subnet.env`);
    const moment = await quietMoment(machine);
    const call = (verb: string) =>
      machine.run([
        ...[PATCHBAY, verb, "--config-dir=/run/net.d", "--plugin-path=/run/bin", "--cache-dir=/run/cache"],
        ...["n", container.netnsPath],
      ]);
    for (const type of paths) {
      const conf = JSON.stringify({ cniVersion: "1.0.0", name: "n", plugins: [places[place](type)] });
      await machine.sh(`printf %s '${conf}' >${file}`);
      const added = await call("add");
      expect([type, added.code, added.stdout + added.stderr]).toEqual([type, 1, expect.stringContaining(type)]);
      await call("del");
    }
    expect(await machine.sh("ls -d /run/traps/* /run/sprung 2>/dev/null || true")).toBe("/run/traps/trap\n");
    expect(await leftSince(moment, machine, / \/run\/cache\/\.patchbay\.lock$/)).toEqual([]);
  },
);

const SECRET = "/etc/shadow";
/** As an engine that has forgotten to close a file of the host's. */
const careless = ["sh", "-c", `exec 9<${SECRET}; exec "$@"`, "engine"];

/** Files that processes of the machine have open; of the engine nothing is left by then. */
function openInMachine(machine: Machine): string[] {
  const namespace = readlinkSync(`/proc/${machine.pid}/ns/mnt`);
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      if (readlinkSync(`/proc/${pid}/ns/mnt`) !== namespace) return [];
      return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return [];
    }
  });
}

const probe = '#!/bin/sh\nls -l /proc/$$/fd >>/run/descriptors\necho \'{"cniVersion":"1.0.0"}\'\n';

test.each([false, true])(
  "CVE-2024-21626: a plugin gets no descriptor of the engine's; with a resident: %p",
  async (resident) => {
    await using machine = await openMachine();
    await trap(machine);
    await machine.sh(`cat >/run/bin/probe <<'END'\n${probe}END\nchmod +x /run/bin/probe; mkdir /run/net.d
    echo '{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"probe"},{"type":"bridge","ipam":{"type":"probe"}}]}' >/run/net.d/n.conflist`);
    const serving = resident ? machine.start([...careless, PATCHBAY, "serve"]) : undefined;
    if (resident) await untilServed(machine);
    const container = await machine.container("c1");
    const dirs = ["--config-dir=/run/net.d", "--plugin-path=/run/bin", "--cache-dir=/run/cache"];
    for (const verb of ["add", "del"]) {
      await machine.run([...careless, PATCHBAY, verb, ...dirs, "n", container.netnsPath]);
    }
    const descriptors = await machine.sh("cat /run/descriptors");
    expect(descriptors.match(/^total/gm)!.length).toBeGreaterThan(3);
    expect(descriptors).not.toContain(SECRET);
    expect(openInMachine(machine)).not.toContain(SECRET);
    serving?.kill();
    await serving?.exited;
  },
);

test("CVE-2024-21626: aardvark-dns gets no descriptor of podman's", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir ${ND}`);
  const { network: made } = creation({ name: "n", subnets: [{ subnet: "10.89.0.0/24", gateway: "10.89.0.1" }] });
  const container = await machine.container("c1");
  const input = {
    container_id: ID,
    container_name: "c1",
    networks: { n: { interface_name: "eth0", static_ips: ["10.89.0.7"], aliases: ["web"] } },
    network_info: {
      n: { ...made, dns_enabled: true, network_interface: "podman8", ipam_options: { driver: "host-local" } },
    },
  };
  const call = async (verb: string) =>
    await machine.run([
      ...careless,
      netavarkProgram(),
      "-c",
      ND,
      `--aardvark-binary=${AARDVARK}`,
      verb,
      container.netnsPath,
    ], {
      stdin: JSON.stringify(input),
    });
  expect(await call("setup")).toMatchObject({ code: 0, stderr: "" });
  expect(await daemons(machine)).toHaveLength(1);
  expect(openInMachine(machine)).not.toContain(SECRET);
  expect(await call("teardown")).toMatchObject({ code: 0 });
});

const entered = `strace -f -qq -e trace=setns,unshare,chroot,pivot_root,mount,clone,clone3,ptrace`.split(" ");

test("CVE-2019-5736: no process of ours enters anything of a container but its network namespace", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), calls: string[] = [];
  const chain = [
    { type: "bridge", isGateway: true, ipMasq: true, ipam },
    {
      type: "portmap",
      capabilities: { portMappings: true },
      runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] },
    },
    { type: "tuning", sysctl: { "net.core.somaxconn": "500" }, mtu: 1400 },
    { type: "firewall" },
  ];
  let prevResult: unknown;
  for (const verb of ["ADD", "CHECK", "DEL"]) {
    for (const conf of verb === "DEL" ? chain.toReversed() : chain) {
      const call = {
        plugin: conf.type,
        command: verb,
        container,
        conf: { cniVersion: "1.0.0", name: "n", prevResult, ...conf },
      };
      const { code, stdout, stderr } = await machine.run([...entered, `${patchbayPlugins()}/${conf.type}`], {
        stdin: stdinOf(call),
        env: environmentOf(patchbayPlugins(), call),
      });
      expect([verb, conf.type, code, stdout]).toEqual([verb, conf.type, 0, expect.anything()]);
      if (verb === "ADD") prevResult = JSON.parse(stdout);
      calls.push(...stderr.split("\n").filter((line) => /\w\(/.test(line)));
    }
  }
  const isOwnChild = (line: string) => /clone3?\(/.test(line) && !line.includes("CLONE_NEW");
  expect(calls.filter((line) => !isOwnChild(line) && !/setns\(\d+, CLONE_NEWNET(\)| <unfinished)/.test(line)))
    .toEqual([]);
  expect(calls.filter((line) => line.includes("setns(")).length).toBeGreaterThan(5);
});

test("CVE-2020-15257: nobody of ours listens at a name that containers in the host's network reach", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  await using service = await startService(segment);
  const resident = await startResident(machine);
  const listening = (await machine.sh("cat /proc/net/unix")).split("\n").filter((line) => / 00010000 /.test(line));
  const paths = listening.map((line) => line.trim().split(/ +/).slice(7).join(" "));
  expect(new Set(paths)).toEqual(new Set([service.socket, SOCKET]));
  for (const path of paths) {
    // Another user in the same network and mount namespace.
    const code =
      `require("node:net").connect("${path}").on("connect", () => process.exit(0)).on("error", () => process.exit(7))`;
    const { code: exit } = await machine.run([
      "setpriv",
      "--reuid=1000",
      "--clear-groups",
      process.execPath,
      "-e",
      code,
    ]);
    expect([path, exit]).toEqual([path, 7]);
  }
  resident.kill();
  await resident.exited;
});

const NAME = "/proc/sys/kernel/domainname";
const injections: Record<string, string>[] = [
  { "net.ipv4.conf.all.forwarding": "1+kernel.domainname=altered" },
  { "net.ipv4.conf.all.forwarding": "1\nkernel.domainname=altered" },
  { "net.ipv4.conf.all.forwarding=1+kernel.domainname": "altered" },
  { "net/../kernel/domainname": "altered" },
  { "net/ipv4/../../kernel/domainname": "altered" },
  { "net.ipv4.conf./../../../../kernel.domainname": "altered" },
  { "kernel.domainname": "altered" },
  { "kernel/domainname": "altered" },
];

test.each(injections)("CVE-2022-0811: %j sets nothing that is not of the network", async (sysctl) => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const prevResult = await network(machine, { type: "bridge", ipam }).add(container);
  const moment = await quietMoment(machine);
  for (const command of ["ADD", "DEL"]) {
    const conf = { cniVersion: "1.0.0", name: "net", type: "tuning", prevResult, sysctl };
    const call = { plugin: "tuning", command, container, conf };
    // The setting is one of the machine's own.
    const own = [
      "unshare",
      "--uts",
      "sh",
      "-c",
      `echo own >${NAME}; "$0" >&2; cat ${NAME}`,
      `${patchbayPlugins()}/tuning`,
    ];
    const { stdout } = await machine.run(own, { stdin: stdinOf(call), env: environmentOf(patchbayPlugins(), call) });
    expect(stdout).toBe("own\n");
  }
  // Its own settings are the container's.
  expect(await leftSince(moment, machine, /^[-+] c1 sysctl ipv4/)).toEqual([]);
});
