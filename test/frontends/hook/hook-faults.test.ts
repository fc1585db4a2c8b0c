/**
 * `patchbay hook` killed, without disk, after a reboot and beside records of others: the next `hook del`, or `hook add`,
 * leaves nothing and nothing stands in its way.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { untilGone } from "../../support/gone.ts";
import { CONFIGS, hook, silent, startHooked, writeNetwork } from "../../support/hooked.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine, moment: Moment;

const ipam = (subnet: string) => ({ type: "host-local", ranges: [[{ subnet }]] });

beforeAll(async () => {
  machine = await openMachine();
  const front = { type: "bridge", bridge: "front0", isGateway: true, ipMasq: true, ipMasqBackend: "nftables" };
  const portmap = { type: "portmap", backend: "nftables", capabilities: { portMappings: true } };
  await writeNetwork(machine, "front", [{ ...front, ipam: ipam("10.1.0.0/24") }, portmap]);
  await writeNetwork(machine, "back", [{ type: "bridge", bridge: "back0", ipam: ipam("10.2.0.0/24") }]);
  await using first = await startHooked(machine, "first");
  expect(await hook(machine, ["add", ...wanted], first.state())).toEqual(silent);
  expect(await hook(machine, ["del"], { id: "first" })).toEqual(silent);
  await first.end();
  moment = await quietMoment(machine);
});
afterAll(() => machine[Symbol.asyncDispose]());

const wanted = ["front", "back", "--ports", "8088:80"];
const left = () => leftSince(moment, machine, /last_reserved_ip|file \/run\/(bundles|foreign)\//);

/** Every such call of each kind, as strace counts them. */
async function callsOf(words: readonly string[], state: unknown): Promise<[string, number][]> {
  const kinds = ["write", "sendto", "sendmsg", "rename", "unlink", "close"];
  const log = "/run/bundles/calls";
  const tracing = ["strace", "-f", "-qq", "-e", `trace=${kinds.join(",")}`, "-o", log];
  await hook(machine, words, state, tracing);
  const text = await machine.sh(`cat ${log}; rm ${log}`);
  return kinds.map((kind) => [kind, text.split("\n").filter((line) => line.includes(` ${kind}(`)).length]);
}

const killing = (kind: string, nth: number) => [
  "strace",
  "-f",
  "-qq",
  "-o",
  "/dev/null",
  "-e",
  `trace=${kind}`,
  "-e",
  `inject=${kind}:signal=KILL:when=${nth}`,
];

/** Ten of each kind, evenly. */
function pointsOf(calls: readonly [string, number][]): [kind: string, nth: number][] {
  return calls.flatMap(([kind, count]) => {
    const step = Math.max(1, Math.ceil(count / 10));
    return Array.from({ length: Math.ceil(count / step) }, (_, index): [string, number] => [kind, 1 + index * step]);
  });
}

test("add, killed at any moment: del leaves nothing", async () => {
  await using probe = await startHooked(machine, "web");
  const calls = await callsOf(["add", ...wanted], probe.state());
  expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  await probe.end();
  let killed = 0;
  for (const [kind, nth] of pointsOf(calls)) {
    await using web = await startHooked(machine, "web");
    const { code } = await hook(machine, ["add", ...wanted], web.state(), killing(kind, nth));
    if (code !== 0) killed++;
    // The runtime ends the container when a hook fails. Whether it calls poststop hooks depends on the runtime.
    await web.end();
    // It may say that it removes a lease that was cut off.
    expect(await hook(machine, ["del"], { id: "web" })).toMatchObject({ code: 0, stdout: "" });
    expect({ kind, nth, left: await left() }).toEqual({ kind, nth, left: [] });
  }
  expect(killed).toBeGreaterThan(10);
});

test("add, killed at any moment, and no del: the next add of that id is as the first", async () => {
  for (const nth of [2, 9, 14, 22, 30]) {
    await using web = await startHooked(machine, "web");
    await hook(machine, ["add", ...wanted], web.state(), killing("sendto,sendmsg", nth));
    await web.end();
    await using again = await startHooked(machine, "web");
    expect(await hook(machine, ["add", ...wanted], again.state())).toEqual(silent);
    await again.inside("ping -c 1 -W 60 10.1.0.1");
    await again.end();
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    expect({ nth, left: await left() }).toEqual({ nth, left: [] });
  }
});

test("del, killed at any moment: the next one leaves nothing", async () => {
  await using probe = await startHooked(machine, "web");
  expect(await hook(machine, ["add", ...wanted], probe.state())).toEqual(silent);
  for (const [kind, nth] of pointsOf(await callsOf(["del"], { id: "web" }))) {
    expect(await hook(machine, ["add", ...wanted], probe.state())).toEqual(silent);
    await hook(machine, ["del"], { id: "web" }, killing(kind, nth));
    expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
    expect({ kind, nth, left: await left() }).toEqual({ kind, nth, left: [] });
  }
  await probe.end();
});

test("after a reboot the same container starts again, whoever has its number now", async () => {
  await using web = await startHooked(machine, "web"), other = await startHooked(machine, "other");
  expect(await hook(machine, ["add", ...wanted], web.state())).toEqual(silent);
  expect(await hook(machine, ["add", "back"], other.state())).toEqual(silent);
  await web.end();
  // Its links and rules are gone, and its number is another container's, or its own again.
  await using again = await startHooked(machine, "web");
  for (const pid of [other.pid, again.pid]) {
    await machine.sh(`
      for file in /var/lib/cni/results/*-web-*; do sed -i 's,/proc/[0-9]*/,/proc/${pid}/,g' $file; done
      rm -rf /run/patchbay/*/web@*; nft flush ruleset; ip link delete dev front0`);
    expect(await hook(machine, ["add", ...wanted], again.state())).toEqual(silent);
    await again.inside("ping -c 1 -W 60 10.1.0.1");
    expect(await other.inside("ip -o -4 addr show dev eth0")).toContain("10.2.0.");
    await again.inside("ip link delete dev eth0; ip link delete dev eth1");
  }
  for (const { id } of [web, other]) expect(await hook(machine, ["del"], { id })).toEqual(silent);
  await again.end();
  await other.end();
  // The bridge is another one.
  const own = (line: string) => !/front0|nft|sysctl .*(front0|forwarding)|rp_filter/.test(line);
  expect((await left()).filter(own)).toEqual([]);
  await using next = await startHooked(machine, "next");
  expect(await hook(machine, ["add", ...wanted], next.state())).toEqual(silent);
  expect(await hook(machine, ["del"], { id: "next" })).toEqual(silent);
  await next.end();
  moment = await quietMoment(machine);
});

const disks = ["/run/patchbay", "/var/lib/cni"].flatMap((path) => [
  {
    path,
    how: "full",
    spoil: `mount -t tmpfs -o size=8k,mode=700 tmpfs ${path}; dd if=/dev/zero of=${path}/f bs=4k`,
  },
  { path, how: "read-only", spoil: `mount -t tmpfs -o ro,mode=700 tmpfs ${path}` },
]);

test.each(disks)("add with $path $how fails and leaves nothing; del and the next add succeed", async (disk) => {
  await using web = await startHooked(machine, "web");
  await machine.sh(`mkdir -p ${disk.path}; ${disk.spoil} 2>/dev/null || true`);
  const outcome = await hook(machine, ["add", ...wanted], web.state());
  expect(outcome).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(disk.path) });
  expect(await web.inside("ip -br link")).toMatch(/^lo .*\n$/);
  expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  await machine.sh(`umount ${disk.path}`);
  expect(await left()).toEqual([]);
  expect(await hook(machine, ["add", ...wanted], web.state())).toEqual(silent);
  expect(await hook(machine, ["del"], { id: "web" })).toEqual(silent);
  await web.end();
  expect(await left()).toEqual([]);
});

test("a foreign plugin that dies with the hook gets its DEL, though nothing is recorded of it", async () => {
  await machine.sh(`
    mkdir -p /run/foreign; ln -sf ${PATCHBAY} /run/foreign/bridge; ln -sf ${PATCHBAY} /run/foreign/host-local
    cat >/run/foreign/deadly <<'END'
#!/bin/sh
given=$(grep -o '"runtimeConfig":{[^}]*}')
echo "$CNI_COMMAND $CNI_IFNAME $CNI_ARGS $given" >>/run/foreign/log
if [ $CNI_COMMAND = ADD ]; then kill -9 $PPID; fi
END
    chmod +x /run/foreign/deadly`);
  await writeNetwork(machine, "deadly", [{ type: "deadly", capabilities: { mac: true, aliases: true } }]);
  await using web = await startHooked(machine, "web");
  const annotations = {
    "dev.patchbay.networks": "back,deadly@net7 mac=02:00:00:00:00:07",
    "dev.patchbay.name": "web 1",
    "dev.patchbay.capabilities": '{"aliases":["www"],"dns":{}}',
  };
  const state = web.state({ annotations });
  const path = ["--plugin-path", "/run/foreign"];
  expect(await hook(machine, ["add", ...path], state)).toMatchObject({ code: 137 });
  await web.end();
  expect(await hook(machine, ["del", ...path], state)).toEqual(silent);
  expect(await machine.sh("cat /run/foreign/log")).toBe(
    'ADD net7 IgnoreUnknown=1;K8S_POD_NAME=web 1 "runtimeConfig":{"mac":"02:00:00:00:00:07","aliases":["www"]}\n' +
      "DEL net7  \n",
  );
  await machine.sh(`rm -r /run/foreign ${CONFIGS}/deadly.conflist`);
  expect(await left()).toEqual([]);
});

test("without a hook del, gc undoes what belongs to a namespace that is gone, and nothing else", async () => {
  await using web = await startHooked(machine, "web"), other = await startHooked(machine, "other");
  expect(await hook(machine, ["add", ...wanted], web.state())).toEqual(silent);
  expect(await hook(machine, ["add", "front", "back"], other.state())).toEqual(silent);
  await web.end();
  await untilGone(machine, 2);
  for (const network of ["front", "back"]) {
    const call = [PATCHBAY, "gc", "--gone", "--config-dir", CONFIGS, network];
    expect(await machine.run(call)).toMatchObject({ code: 0, stdout: "" });
  }
  expect(await machine.sh("ls /var/lib/cni/results; find /run/patchbay -type f ! -name 'serve~*'")).not.toContain(
    "web",
  );
  await other.inside("ping -c 1 -W 60 10.1.0.1");
  expect(await hook(machine, ["del"], { id: "other" })).toEqual(silent);
  await other.end();
  expect(await left()).toEqual([]);
});

test("twenty containers at once", async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const containers = await Promise.all(ids.map((id) => startHooked(machine, id)));
  const added = await Promise.all(containers.map((one) => hook(machine, ["add", "front", "back"], one.state())));
  expect(added).toEqual(ids.map(() => silent));
  const given = await Promise.all(containers.map(({ inside }) => inside("ip -o -4 addr show scope global")));
  const all = given.flatMap((text) => text.match(/10\.[12]\.0\.[0-9]+(?=\/)/g) ?? []);
  expect(new Set(all).size).toBe(40);
  for (const one of containers.slice(10)) await one.end();
  expect(await Promise.all(ids.map((id) => hook(machine, ["del"], { id })))).toEqual(ids.map(() => silent));
  for (const one of containers) await one.end();
  expect(await left()).toEqual([]);
});
