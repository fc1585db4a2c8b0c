/**
 * Who is gone: nothing of a living container is taken away, however its namespace is hidden from us; when it has ended,
 * everything is.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { lacks } from "../../support/kernel-features.ts";
import { type Container, type Machine, openMachine, type Outcome } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.9.0.0/24" }]] };
const masquerade = { ipMasq: true, ipMasqBackend: "nftables", ipam };
const kinds = [
  {
    name: "bridge",
    plugins: [{ type: "bridge", bridge: "br0", isGateway: true, ...masquerade }, {
      type: "portmap",
      backend: "nftables",
      capabilities: { portMappings: true },
    }],
  },
  { name: "ptp", plugins: [{ type: "ptp", ...masquerade }] },
  { name: "macvlan", plugins: [{ type: "macvlan", master: "up0", ipam }] },
].filter(({ name }) => name !== "macvlan" || !lacks("macvlan links"));
const CAP_ARGS = '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}';

let machine: Machine;
const seen = async (command: string, around: string[] = []) =>
  JSON.parse((await patchbay([command, "net", "--json"], around)).stdout);
const patchbay = (args: string[], around: string[] = []): Promise<Outcome> =>
  machine.run([...around, PATCHBAY, ...args], { env: { NETCONFPATH: CONFIGS, CAP_ARGS } });

/** Everything that is recorded and made, but for what the network keeps. */
const everything = () =>
  machine.sh(
    "find /run/patchbay/* /var/lib/cni -type f ! -name 'last_*' ! -path '*/.patchbay*' 2>/dev/null | sort\n" +
      "nft list ruleset | grep -E 'elements|10[.]9|tcp' || true; ls /sys/class/net",
  );

/** Holds the namespace when its path is gone. */
async function hold({ name, netnsPath }: Container) {
  const process = machine.start(["nsenter", `--net=${netnsPath}`, "sleep", "infinity"]);
  await untilTrue(() => machine.sh(`ip netns pids ${name}`), (pids) => pids !== "");
  return process;
}

/** The program sees no other process. */
const blind = ["unshare", "--pid", "--fork", "--mount-proc"];
const hostEnd = "$(ls /sys/class/net | grep veth)", unmount = "umount -l /run/netns/web";

/** The path of ADD does not lead to the container any more. `isShownByEnd`: only by the pair's end on the host it lives. */
const hidings: { how: string; script: string; around?: string[]; isShownByEnd?: true }[] = [
  { how: "its path is not mounted any more", script: unmount },
  { how: "another container has its path", script: `${unmount}; rm /run/netns/web; ip netns add web` },
  {
    how: "it is mounted elsewhere, and has no process that is seen",
    script: `touch /run/other; mount --bind /run/netns/web /run/other; ${unmount}`,
    around: blind,
  },
  { how: "no process is seen", script: unmount, around: blind },
  {
    how: "the host's end is renamed",
    script: `${unmount}; ip link set ${hostEnd} down name other0`,
    around: blind,
    isShownByEnd: true,
  },
  {
    how: "the host's end has another address",
    script: `${unmount}; ip link set ${hostEnd} address 02:00:00:00:00:77`,
    around: blind,
    isShownByEnd: true,
  },
  { how: "this is another network namespace", script: unmount, around: [...blind, "unshare", "--net"] },
];

describe.each(kinds)("$name", ({ name, plugins }) => {
  beforeAll(async () => {
    machine = await openMachine();
    await machine.sh("ip link add up0 type bridge; ip link set up0 up");
    await writeNetwork(machine, "net", plugins);
    const first = await machine.container("first");
    for (const verb of ["add", "del"]) expect(await patchbay([verb, "net", "first"])).toMatchObject({ code: 0 });
    await machine.removeContainer(first);
    // DEL leaves a link to a process that removes it.
    await untilTrue(() => machine.sh("ls /sys/class/net | grep veth || true"), (links) => links === "");
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  const possible = hidings.filter(({ isShownByEnd }) => !isShownByEnd || name !== "macvlan");
  test.each(possible)("lives although $how, and is gone when it has ended", async ({ script, around }) => {
    const empty = await everything(), web = await machine.container("web");
    expect(await patchbay(["add", "net", "web"])).toMatchObject({ code: 0 });
    const process = await hold(web);
    const inside = () => machine.sh(`nsenter --net=/proc/${process.pid}/ns/net ip -br -4 addr show eth0`);
    await machine.sh(script);
    const [before, address] = [await everything(), await inside()];
    const [{ address: leased, containerId }] = JSON.parse((await patchbay(["ipam", "list", "net", "--json"])).stdout);
    const releases = [[leased], ["--container", containerId]].map((whose) => ["ipam", "release", "net", ...whose]);
    for (const command of [["gc", "--gone"], ["gc", "net", "--gone"], ["network", "remove", "net"], ...releases]) {
      expect(await patchbay(command, around)).toMatchObject({ code: command[0] === "gc" ? 0 : 1 });
      expect([await everything(), await inside()]).toEqual([before, address]);
    }
    expect(await seen("inspect", around)).toMatchObject([{ containerId, state: "elsewhere", plugins: [] }]);
    expect(await seen("repair", around)).toMatchObject([{ containerId, state: "elsewhere", plugins: [] }]);
    for (const command of ["inspect", "check", "repair"]) {
      const { code, stdout, stderr } = await patchbay([command, "net", containerId], around);
      expect({ code, says: stdout + stderr }).toEqual({
        code: 1,
        says: expect.not.stringMatching(/is gone[:\n]|\bdel\b/),
      });
      expect([await everything(), await inside()]).toEqual([before, address]);
    }
    process.kill("SIGKILL");
    await process.exited;
    await machine.sh("umount /run/other || true; rm -f /run/other; ip netns del web");
    // The kernel ends a namespace a moment after its last process.
    for (const command of ["inspect", "repair"]) {
      await untilTrue(() => seen(command), ([shown]) => shown.state === "gone");
    }
    const collected = async () => {
      expect(await patchbay(["gc", "--gone"])).toMatchObject({ code: 0 });
      return await everything();
    };
    await untilTrue(collected, (now) => now === empty);
  });
});

describe("another container of the same id", () => {
  const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipam };
  /** DEL waits for a file; it notes the path that it was given. */
  const waiting = `#!/bin/sh
cat >/dev/null
if [ $CNI_COMMAND = DEL ]; then
  echo "path $CNI_NETNS" >/run/plugins/deleting
  while [ ! -e /run/plugins/release ]; do sleep 0.01; done
fi
echo '{"cniVersion":"1.1.0"}'
`;
  beforeAll(async () => {
    machine = await openMachine();
    await machine.sh("mkdir /run/plugins; cat >/run/plugins/waiting; chmod +x /run/plugins/waiting", {
      stdin: waiting,
    });
    await machine.sh(`cd /run/plugins; ln -s ${PATCHBAY} bridge; ln -s ${PATCHBAY} host-local`);
    await writeNetwork(machine, "net", [bridge, { type: "waiting" }]);
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  const withPlugins = { env: { NETCONFPATH: CONFIGS, CNI_PATH: "/run/plugins" } };
  const add = (name: string) =>
    machine.run([PATCHBAY, "add", "net", name, "--container-id", `id-${name}`], withPlugins);

  // What is deleted, while which one is attached again: itself, and one whose turn comes later.
  test.each([["itself", "a"], ["one whose turn comes later", "b"]])(
    "that an engine attaches while gc is at work stays: %s",
    async (_, again) => {
      for (const name of ["a", "b"]) {
        const container = await machine.container(name);
        expect(await add(name)).toMatchObject({ code: 0 });
        await machine.removeContainer(container);
        await untilTrue(() => machine.sh("ip -br link show type veth"), (links) => links === "");
      }
      const collecting = machine.run([PATCHBAY, "gc", "--gone"], withPlugins);
      const deleting = "cat /run/plugins/deleting 2>/dev/null || true";
      expect(await untilTrue(() => machine.sh(deleting), Boolean)).toBe("path \n");
      // As an engine does: not under our runtime's lock.
      const container = await machine.container(again);
      const net = network(machine, { ...bridge, name: "net" });
      await net.del(container, { containerId: `id-${again}` });
      const { ips: [{ address }] } = await net.add(container, { containerId: `id-${again}` });
      await machine.sh("touch /run/plugins/release");
      const { code, stderr } = await collecting;
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("attached again") });
      expect(await machine.sh("ip -br -4 addr show eth0", { in: container })).toMatch(new RegExp(`UP +${address}`));
      expect(await machine.sh("cat /var/lib/cni/networks/net/10.*")).toBe(`id-${again}\r\neth0`);
      expect(await machine.sh("ls /run/patchbay/net")).toBe(`id-${again}@eth0@bridge\n`);
      expect(await machine.run([PATCHBAY, "gc", "net", "--all"], withPlugins)).toMatchObject({ code: 0 });
      await machine.sh("rm /run/plugins/release /run/plugins/deleting");
      await machine.removeContainer(container);
    },
  );
});

describe("a ledger that somebody has damaged", () => {
  const spoil = (what: string) => `sed -i '${what}' /run/patchbay/net/*@bridge`;
  const damages: [what: string, script: string][] = [
    ["a specification is null", spoil('s/"kind":"veth","spec":{[^}]*}/"kind":"veth","spec":null/')],
    ["a specification has another form", spoil('s/"addresses":\\[[^]]*\\]/"addresses":7/g')],
    ["the configuration is no object", spoil('1s/"stdin":"\\([^"\\\\]\\|\\\\.\\)*"/"stdin":"7"/')],
    ["the header lacks the container", spoil('1s/"containerId":"[^"]*",//')],
    [
      "it is a copy",
      "cp /run/patchbay/net/*@bridge /run/patchbay/net/other@eth0@bridge; chmod 600 /run/patchbay/net/*",
    ],
    ["it is empty", "cd /run/patchbay; mkdir -m 700 empty; touch empty/none@eth0@bridge; chmod 600 empty/*"],
  ];
  beforeAll(async () => {
    machine = await openMachine();
    await writeNetwork(machine, "net", [{ type: "bridge", bridge: "br0", isGateway: true, ...masquerade }]);
    await machine.container("lives");
    expect(await patchbay(["add", "net", "lives", "-i", "eth1", "--container-id", "lives"])).toMatchObject({
      code: 0,
    });
  });
  afterAll(() => machine[Symbol.asyncDispose]());

  test.each(damages)("%s: gc --gone succeeds, and nothing is left", async (_, script) => {
    const before = await everything(), dead = await machine.container("dead");
    await machine.sh("cp -a /run/patchbay/net /run/keep");
    expect(await patchbay(["add", "net", "dead", "--container-id", "dead"])).toMatchObject({ code: 0 });
    await machine.sh("mv /run/patchbay/net/lives@* /run/keep");
    await machine.sh(script);
    await machine.sh("mv /run/keep/lives@* /run/patchbay/net; rm -r /run/keep");
    await machine.removeContainer(dead);
    const collected = async () => {
      expect(await patchbay(["gc", "--gone"])).toMatchObject({ code: 0 });
      expect(await patchbay(["gc", "net", "--gone"])).toMatchObject({ code: 0 });
      return await everything();
    };
    await untilTrue(collected, (now) => now.replace(/.*(other|dead)@eth0.*\n/g, "") === before);
    expect(await patchbay(["check", "net", "lives", "-i", "eth1"])).toMatchObject({ code: 0 });
    await machine.sh("rm -f /run/patchbay/net/other@*");
  });
});

test("a neighbour on the same bridge, whose MAC address the bridge has, does not make the dead live", async () => {
  machine = await openMachine();
  await using _ = machine;
  await writeNetwork(machine, "net", [{ type: "bridge", bridge: "br0", ipam }]);
  // Every result names the bridge with the address that it then has: that of its lowest port.
  await machine.sh("ip link add br0 type bridge; ip link set br0 up");
  const containers: Container[] = [], living: string[] = [];
  for (const name of ["a", "b", "c", "d"]) {
    containers.push(await machine.container(name));
    expect(await patchbay(["add", "net", name, "--container-id", name])).toMatchObject({ code: 0 });
  }
  const lowest = (await machine.sh("cat /sys/class/net/br0/address")).trim();
  for (const container of containers) {
    const [, index] = /@if(\d+)/.exec(await machine.sh("ip -o link show eth0", { in: container }))!;
    const ofHost = await machine.sh(`ip -o link | grep '^${index}: '`);
    if (ofHost.includes(lowest)) living.push(container.name);
    else await machine.removeContainer(container);
  }
  expect(living).toHaveLength(1);
  const recorded = async () => {
    expect(await patchbay(["gc", "--gone"])).toMatchObject({ code: 0 });
    return await machine.sh("ls /run/patchbay/net");
  };
  await untilTrue(recorded, (now) => now === `${living[0]}@eth0@bridge\n`);
});
