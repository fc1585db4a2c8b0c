/**
 * The DHCP service as systemd runs it from the unit that `patchbay install --dhcp` writes: it does all that it does without
 * one, and has no way to other files.
 */
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER6, value } from "../../../support/dhcp/offer.ts";
import { serveScript } from "../../../support/dhcp/scripted-server.ts";
import { iscDhcpd6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { untilAddresses } from "../../../support/dhcp/service.ts";
import type { Container, Machine } from "../../../support/machine.ts";
import { lacks } from "../../../support/kernel-features.ts";
import { network } from "../../../support/network.ts";
import { writeOtherBuild } from "../../../support/other-build.ts";
import { PATCHBAY } from "../../../support/plugins.ts";
import { Systemd } from "../../../support/systemd.ts";

const hasNone = lacks("cgroups of version 2");
const address = "192.168.77.50", UNIT = "cni-dhcp.service", BIN = "/run/cni-bin";

async function install(machine: Machine, { inside }: Systemd): Promise<void> {
  // The program may be below /tmp, which systemd has one of its own of.
  await machine.sh(`${PATCHBAY} install ${BIN}`);
  await inside.sh(`${BIN}/patchbay install --dhcp ${BIN}`);
}

/** Where engines have a container's namespace: a script that makes the path, which is its last line of output. */
const places = {
  "a name of ip-netns(8)": "echo /run/netns/c1",
  "the namespace of a process of another user, who has more capabilities":
    "nsenter --net=/run/netns/c1 setpriv --reuid=1000 --clear-groups sleep infinity >/dev/null 2>&1 & echo /proc/$!/ns/net",
  "a directory that only another user may enter": `
    mkdir -p /run/user/1000/netns && touch /run/user/1000/netns/c1 && mount --bind /run/netns/c1 /run/user/1000/netns/c1
    chown 1000 /run/user/1000 && chmod 700 /run/user/1000 && echo /run/user/1000/netns/c1`,
  "below /tmp": "touch /tmp/c1 && mount --bind /run/netns/c1 /tmp/c1 && echo /tmp/c1",
};

test.skipIf(hasNone).each(Object.keys(places) as (keyof typeof places)[])(
  "lease, renewals, restart as another build and release: %s",
  async (place) => {
    await using segment = await serverBehindBridge();
    const { machine } = segment;
    const options = { 26: value.u16(1400), 58: value.u32(2), 59: value.u32(50) };
    const server = await serveScript(segment.site, { address, leaseSeconds: 60, options });
    await using systemd = await Systemd.start(machine);
    await install(machine, systemd);
    const named = await machine.container("c1");
    const netnsPath = (await systemd.inside.sh(places[place])).trim();
    const container: Container = { name: "c1", netnsPath };
    const net = network(systemd.inside, { type: "bridge", bridge: "br0", ipam: { type: "dhcp" } }, BIN);

    expect((await net.add(container)).ips[0].address).toBe(`${address}/24`);
    await untilAddresses(segment, named, ([one]) => one?.address === address && one.valid < Infinity);
    expect(await machine.sh("ip link show eth0", { in: named })).toContain(" mtu 1400 ");
    const untilRenewed = async () => {
      const seen = server.received().length;
      await server.until((all) => all.slice(seen).some(({ asked }) => asked === "RENEW"));
    };
    await untilRenewed();
    const pid = await systemd.property(UNIT, "MainPID");
    const other = writeOtherBuild(`${segment.folder}/other`, 1);
    await machine.sh(`cp ${other} ${BIN}/new && mv ${BIN}/new ${BIN}/patchbay`);
    await systemd.inside.sh(`systemctl restart ${UNIT}`);
    expect(await systemd.property(UNIT, "MainPID")).not.toBe(pid);
    await untilRenewed();
    await net.check(container);
    await net.del(container);
    await server.until((all) => all.at(-1)!.kind === "RELEASE");
    expect(await systemd.inside.sh("ls /var/lib/cni/dhcp")).toBe("lock\n");
  },
);

test.skipIf(hasNone)(
  "a namespace that is deleted ends, also one that was there when the service started",
  async () => {
    await using segment = await serverBehindBridge();
    const { machine } = segment, before = await machine.container("before");
    await using systemd = await Systemd.start(machine);
    await install(machine, systemd);
    await systemd.inside.sh(`systemctl start ${UNIT}`);
    for (const container of [before, await machine.container("after")]) {
      await machine.sh(`ip link add probe type veth peer name inside netns ${container.name}`);
      await machine.removeContainer(container);
      // A link ends with the namespace of its other end.
      await machine.sh("while ip link show probe >/dev/null 2>&1; do sleep 0.01; done");
    }
    expect(await systemd.property(UNIT, "ActiveState")).toBe("active");
  },
);

test.skipIf(hasNone)("IPv6 is off in the container: it is on for the link that gets an address", async () => {
  await using segment = await serverBehindBridge();
  await serve6(iscDhcpd6, segment.site, { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 });
  await using systemd = await Systemd.start(segment.machine);
  await install(segment.machine, systemd);
  const container = await segment.machine.container("c1");
  await segment.machine.sh("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6", { in: container });
  const ipam = { type: "dhcp", ipv4: false, ipv6: true };
  const net = network(systemd.inside, { type: "bridge", bridge: "br0", ipam }, BIN);
  const { ips: [{ address }] } = await net.add(container);
  await untilAddresses(segment, container, ([one]) => `${one?.address}/128` === address && one!.valid < Infinity);
  await net.del(container);
});

/** Numbers of linux/capability.h. */
const needed = {
  DAC_READ_SEARCH: 2,
  NET_BIND_SERVICE: 10,
  NET_ADMIN: 12,
  NET_RAW: 13,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
};

test.skipIf(hasNone)(
  "it has the capabilities that it needs, and writes to no file but its leases and its containers' settings",
  async () => {
    await using segment = await serverBehindBridge();
    await using systemd = await Systemd.start(segment.machine);
    await install(segment.machine, systemd);
    await systemd.inside.sh(`systemctl start ${UNIT}`);
    const pid = await systemd.property(UNIT, "MainPID");
    const status = await systemd.inside.sh(`cat /proc/${pid}/status`);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    const mask = Object.values(needed).reduce((sum, bit) => sum + 2 ** bit, 0).toString(16).padStart(16, "0");
    for (const set of ["CapPrm", "CapEff", "CapBnd"]) expect(status).toContain(`${set}:\t${mask}\n`);
    const writable = async (path: string) =>
      (await systemd.inside.run(["nsenter", `--mount=/proc/${pid}/ns/mnt`, "sh", "-c", `: >>${path}`])).code === 0;
    for (
      const path of ["/etc/systemd/x", "/etc/cron.d/x", "/usr/x", "/root/x", "/tmp/x", "/var/lib/x", "/var/lib/cni/x"]
    ) {
      expect([path, await writable(path)]).toEqual([path, false]);
    }
    for (const path of ["/var/lib/cni/dhcp/x", "/proc/sys/net/ipv6/conf/all/accept_ra"]) {
      expect([path, await writable(path)]).toEqual([path, true]);
    }
  },
);
