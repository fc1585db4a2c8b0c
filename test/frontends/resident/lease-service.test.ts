/** `patchbay serve --dhcp`: the DHCP service is a child, and is started again with its leases. `patchbay ipam list` shows them. */
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { type Segment, serverBehindBridge } from "../../support/dhcp/link.ts";
import { kindsOf, serveScript } from "../../support/dhcp/scripted-server.ts";
import { isListening } from "../../support/listening.ts";
import { network } from "../../support/network.ts";
import { writeOtherBuild } from "../../support/other-build.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { childrenOf, hasOwnGroup, isWaiting, terminate } from "../../support/resident.ts";
import { untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

const address = "192.168.77.50", SOCKET = "/run/cni/dhcp.sock";
const conf = { type: "bridge", bridge: "br0", ipam: { type: "dhcp" } };

async function serving({ machine }: Segment, program = PATCHBAY) {
  const resident = machine.start(["setpriv", "--pdeathsig", "KILL", program, "serve", "--dhcp", "--workers=1"]);
  await untilServed(machine, program);
  return resident;
}

/** The child that listens for the plugin dhcp; another than `before`. */
async function serviceOf(pid: number, before?: number): Promise<number> {
  const isService = (child: number) => child !== before && commandOf(child).includes("dhcp\0");
  return (await untilTrue(
    () => childrenOf(pid).find(isService),
    (found) => found !== undefined && isListening({ pid: found }, SOCKET),
  ))!;
}

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

function commandOf(pid: number): string {
  return existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "latin1") : "";
}

function hasEnded(pid: number): boolean {
  return commandOf(pid) === "";
}

test("the service is up, comes back with its leases when it is killed, and ends with the resident", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  const resident = await serving(segment), first = await serviceOf(resident.pid);
  const container = await machine.container("c1"), net = network(machine, conf);
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);

  await untilTrue(() => isWaiting(resident.pid), Boolean);
  expect(hasOwnGroup(first)).toBe(true);
  const open = descriptorsOf(resident.pid);
  process.kill(first, "SIGKILL");
  const second = await serviceOf(resident.pid, first);
  await untilTrue(() => isWaiting(resident.pid), Boolean);
  expect(descriptorsOf(resident.pid)).toBe(open);
  await net.check(container);
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);

  // However it ends.
  process.kill(resident.pid, "SIGKILL");
  await resident.exited;
  await untilTrue(() => hasEnded(second), Boolean);
  const again = "patchbay: the DHCP service has ended; it is started again, and goes on with its leases\n";
  expect((await resident.stderr.text()).split(again).length).toBe(2);
  const next = await serving(segment), third = await serviceOf(next.pid);
  await net.check(container);
  await net.del(container);
  await server.until((all) => kindsOf(all).includes("RELEASE"));
  await terminate(next);
  await untilTrue(() => hasEnded(third), Boolean);
  await untilTrue(async () => (await machine.run(["test", "-e", SOCKET])).code, (code) => code === 1);
});

test("an upgrade: the service is of the new build, too, and has the leases", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  const own = join(folder, "own");
  copyFileSync(PATCHBAY, own);
  const resident = await serving(segment, own), before = await serviceOf(resident.pid);
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  await machine.sh(`mv ${writeOtherBuild(join(folder, "other"), 1)} ${own}`);
  expect((await untilServed(machine, own)).pid).toBe(resident.pid);
  await untilTrue(() => hasEnded(before), Boolean);
  const after = await serviceOf(resident.pid, before);
  expect(await machine.sh(`readlink /proc/${after}/exe`)).toBe(`${own}\n`);
  await net.check(container);
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);
  await terminate(resident);
});

test("ipam list shows the leases, and which are given up", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  await serveScript(segment.site, { address, leaseSeconds: 1000 });
  const resident = await serving(segment), service = await serviceOf(resident.pid);
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  const row =
    /^net +192\.168\.77\.50 +ctr-c1 +c1 +eth0 +DHCP from 192\.168\.77\.1, bound, renews in \d+ s, expires in \d+ s\n$/;
  expect(await machine.sh(`${PATCHBAY} ipam list`)).toMatch(row);
  expect(await machine.sh(`${PATCHBAY} ipam list net`)).toMatch(row);
  expect(await machine.sh(`${PATCHBAY} ipam list --dhcp-dir /var/lib/cni/dhcp`)).toMatch(row);
  expect(await machine.sh(`mkdir -p /run/none; ${PATCHBAY} ipam list --dhcp-dir /run/none`)).toBe("");
  const [listed] = JSON.parse(await machine.sh(`${PATCHBAY} ipam list --json`));
  expect(listed).toMatchObject({ network: "net", address, containerId: "ctr-c1", ifName: "eth0", state: "bound" });
  expect(listed.expiresIn).toBeGreaterThan(listed.renewsIn);
  expect(listed.expiresIn).toBeLessThanOrEqual(1000);
  await machine.sh("echo torn > /var/lib/cni/dhcp/net@x@eth0.lease");
  expect(await machine.sh(`${PATCHBAY} ipam list`)).toMatch(row);

  resident.kill("SIGTERM");
  await resident.exited;
  await untilTrue(() => hasEnded(service), Boolean);
  await net.del(container);
  const { stdout } = await machine.run([PATCHBAY, "ipam", "list", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject([{ address, state: "given up" }]);
});
