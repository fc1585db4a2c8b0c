/**
 * The host's own links on a bridge of Open vSwitch, as docs/ovs.md has them made: a container that sends any frame does not
 * give the host routes by them. The page's commands run word for word.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { root } from "../support/documents.ts";
import * as frames from "../support/frames.ts";
import { fatesIn, NOTHING_BELIEVED, openWorld } from "../support/hostile.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Machine } from "../support/machine.ts";
import { PATIENT, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";

const EAGER = resolve(import.meta.dir, "../support/eager-sender.ts");
const page = readFileSync(join(root, "docs/ovs.md"), "utf8");

/** The only block with this text below the heading. */
function block(heading: string, having: string): string {
  const [, section = ""] = page.split(`\n## ${heading}\n`), [text] = section.split("\n## ");
  const blocks = [...text!.matchAll(/^```\w*\n([^]*?)^```$/gm)].map(([, one]) => one!);
  const [found, ...more] = blocks.filter((one) => one.includes(having));
  expect({ heading, having, found: typeof found, more }).toMatchObject({ found: "string", more: [] });
  return found!;
}

const bridges = {
  kernel: block("Setting it up", "apt-get").replace(/^apt-get .*\n/, ""),
  process: block("Setting it up", "datapath_type"),
};
const lan = block("A container in a VLAN", "20-lan.conflist"), wayOut = block("A way out", "host100");
const forDhcp = block("Addresses by DHCP", "host42");
/** As whoever leaves these lines out makes the link, or has read a page without them. */
const withoutSysctls = (commands: string) => commands.replace(/^sysctl .*\n/gm, "");

/** A network of VLANs on the bridge that the page has no file for. */
const other = (name: string, more: object) => {
  const ipam = { type: "host-local", subnet: "10.50.0.0/24", gateway: "10.50.0.1" };
  const conf = { cniVersion: "1.1.0", name, plugins: [{ type: "ovs", bridge: "ovs0", ...more, ipam }] };
  return `mkdir -p /etc/cni/net.d; cat >/etc/cni/net.d/40-${name}.conflist <<'END'\n${JSON.stringify(conf)}\nEND\n`;
};

const onBridge = "ip addr add 10.50.0.1/24 dev ovs0\nip link set ovs0 up\n";
const vlanLink = `ip link set ovs0 up
ip link add link ovs0 name ovs0.7 type vlan id 7\nip addr add 10.50.0.1/24 dev ovs0.7\nip link set ovs0.7 up\n`;

interface Row {
  name: string;
  needs?: Feature;
  network: string;
  files: string;
  link: string;
  makeLink: string;
  /** The link is there, and ADD closes it. Otherwise it is made beside a container that runs. */
  isBefore: boolean;
}

const rows: Row[] = [
  {
    name: "the way out, made beside containers",
    network: "lan",
    files: lan,
    link: "host100",
    makeLink: wayOut,
    isBefore: false,
  },
  {
    name: "the way out, made before them",
    network: "lan",
    files: lan,
    link: "host100",
    makeLink: wayOut,
    isBefore: true,
  },
  {
    name: "the way out without the page's sysctls",
    network: "lan",
    files: lan,
    link: "host100",
    makeLink: withoutSysctls(wayOut),
    isBefore: true,
  },
  {
    name: "the DHCP server's link, made beside containers",
    network: "other",
    files: other("other", { vlan: 42 }),
    link: "host42",
    makeLink: forDhcp,
    isBefore: false,
  },
  {
    name: "the DHCP server's link without the page's sysctls",
    network: "other",
    files: other("other", { vlan: 42 }),
    link: "host42",
    makeLink: withoutSysctls(forDhcp),
    isBefore: true,
  },
  {
    name: "an internal port in one of the VLANs of a trunk",
    network: "other",
    files: other("other", { trunk: [{ id: 0 }, { minID: 40, maxID: 50 }] }),
    link: "ovs0",
    makeLink: withoutSysctls(forDhcp) + "ip addr del 10.50.0.1/24 dev host42\n" + onBridge,
    isBefore: true,
  },
  {
    name: "the bridge's own port",
    network: "other",
    files: other("other", {}),
    link: "ovs0",
    makeLink: onBridge,
    isBefore: true,
  },
  {
    name: "a VLAN link upon the bridge's own port",
    needs: "VLAN links",
    network: "other",
    files: other("other", { vlan: 7 }),
    link: "ovs0.7",
    makeLink: vlanLink,
    isBefore: true,
  },
];

const privately = `
  mkdir -p /run/etc /run/bin && cp -a /etc/. /run/etc && rm -rf /run/etc/cni
  mount --bind /run/etc /etc; mount --bind /run/bin /usr/local/bin; ln -s ${PATCHBAY} /usr/local/bin/patchbay
  mkdir -p /etc/cni/net.d/ovs.d; echo '${JSON.stringify(PATIENT)}' >/etc/cni/net.d/ovs.d/ovs.conf`;

/** The world with a bridge of the page's, and in it the network, the link and the container, each in its turn. */
async function openPage({ network, files, link, makeLink, isBefore }: Row, datapath: keyof typeof bridges) {
  const machine = await openWorld(), ovs = await startOpenVswitch(machine);
  await machine.sh(`${privately}\n${bridges[datapath]}`);
  // The page's file, and after it the page's containers where it has some.
  const [writing, attaching = ""] = files.split(/^(?=ip netns add web$)/m), bad = await machine.container("bad");
  await machine.sh(writing!);
  if (isBefore) await machine.sh(makeLink);
  const before = await machine.run(["sh", "-ec", attaching]);
  expect(before).toMatchObject({ code: 0 });
  const run = await machine.run([PATCHBAY, "add", network, bad.netnsPath]);
  expect(run.code).toBe(0);
  if (!isBefore) await machine.sh(makeLink);
  const { ips: [{ address, gateway }] } = JSON.parse(run.stdout);
  await machine.sh(`nft -f - <<'END'
    table inet seen {
      counter advertisements { }
      chain input {
        type filter hook input priority 0;
        icmpv6 type nd-router-advert iifname ${link} counter name advertisements
      }
    }
END`);
  return {
    machine,
    /** The first ADD on the bridge says what it has closed. */
    stderr: before.stderr + run.stderr,
    net: { bad, link, address: address.replace(/\/.*/, ""), gateway },
    async [Symbol.asyncDispose]() {
      await ovs[Symbol.asyncDispose]();
      await machine[Symbol.asyncDispose]();
    },
  };
}

const keysOf = (link: string) => [`net/ipv6/conf/${link}/accept_ra`, `net/ipv4/conf/${link}/accept_redirects`];

const valuesOf = (machine: Machine, link: string) => machine.sh(`cd /proc/sys; cat ${keysOf(link).join(" ")}`);

describe.each(["process", "kernel"] as const)("datapath: %s", (datapath) => {
  const isAbsent = datapath === "kernel" && lacks("Open vSwitch's datapath");

  for (const row of rows) {
    test.skipIf(isAbsent || lacks(row.needs))(
      `${row.name}: no frame of a container changes the host's routes`,
      async () => {
        await using stage = await openPage(row, datapath);
        expect(await fatesIn(stage.machine, stage.net)).toEqual(NOTHING_BELIEVED);
        expect(await valuesOf(stage.machine, row.link)).toBe("0\n0\n");
        expect(stage.stderr).toBe("");
        expect(await stage.machine.run([PATCHBAY, "check", row.network, stage.net.bad.netnsPath])).toMatchObject({
          code: 0,
        });
      },
    );

    // Otherwise the frames could be wrong, and nothing would be refused. Where the page has IPv4 forwarded, redirects are.
    if (row.makeLink.includes("ip_forward")) continue;
    // What the host believes does not depend on the datapath.
    if (datapath !== "process") continue;
    test.skipIf(lacks(row.needs))(`${row.name}: without what is refused, all of it counts`, async () => {
      await using stage = await openPage(row, datapath);
      await stage.machine.sh(`cd /proc/sys; for key in ${keysOf(row.link).join(" ")}; do echo 1 >$key; done
        echo 1 >net/ipv4/conf/all/accept_redirects`);
      expect(await fatesIn(stage.machine, stage.net)).toEqual({
        ...NOTHING_BELIEVED,
        advertisement: "accepted",
        redirect: "accepted",
      });
    });
  }

  const [first] = rows, bare = { ...first!, makeLink: withoutSysctls(wayOut), isBefore: true };

  test.skipIf(isAbsent)(
    "whoever opens the link is found out, repair closes it, and DEL leaves it closed",
    async () => {
      await using stage = await openPage(bare, datapath);
      const { machine, net: { bad } } = stage;
      for (const key of [...keysOf("host100"), "net/ipv4/conf/all/accept_redirects"]) {
        await machine.sh(`echo 1 >/proc/sys/${key}`);
        const { stdout } = await machine.run([PATCHBAY, "inspect"]);
        expect(stdout).toContain(`${key.replaceAll("/", ".")} is 1, not 0`);
        expect(await machine.run([PATCHBAY, "repair"])).toMatchObject({ code: 0 });
        expect(await machine.sh(`cat /proc/sys/${key}`)).toBe("0\n");
      }
      await machine.sh(`${PATCHBAY} del lan ${bad.netnsPath}`);
      expect(await valuesOf(machine, "host100")).toBe("0\n0\n");
    },
  );

  test.skipIf(isAbsent)("a container that sends advertisements all the time while it gets its link", async () => {
    await using stage = await openPage(bare, datapath);
    const { machine, net: { bad } } = stage,
      all = { source: "fe80::bad", destination: "ff02::1", to: frames.ALL_NODES };
    const frame = frames.routerAdvertisement({ ...all, from: "02:00:00:00:0b:ad" }, "2001:db8:bad::");
    await machine.sh(`${PATCHBAY} del lan ${bad.netnsPath}`);
    const sender = machine.start(["ip", "netns", "exec", bad.name, process.execPath, EAGER, "eth0", frame]);
    for (let round = 0; round < 3; round++) {
      await machine.sh(`echo 1 >/proc/sys/net/ipv6/conf/host100/accept_ra; ${PATCHBAY} add lan ${bad.netnsPath}`);
      // They come, and count for nothing.
      await untilTrue(
        () => machine.sh("nft list counter inet seen advertisements"),
        (text) => !/packets 0 /.test(text),
      );
      expect(await machine.sh("ip -6 route show proto ra; ip -6 address show to 2001:db8:bad::/64")).toBe("");
      await machine.sh(`${PATCHBAY} del lan ${bad.netnsPath}; nft reset counters table inet seen`);
    }
    sender.kill();
    await sender.exited;
  });

  test.skipIf(isAbsent)(
    "a link of the host that the container does not reach stays as its owner has it",
    async () => {
      const elsewhere = `ovs-vsctl add-port ovs0 host8 tag=8 -- set interface host8 type=internal
      ip link set host8 up; ip link set ovs0 up\n`;
      await using stage = await openPage({ ...bare, makeLink: bare.makeLink + elsewhere }, datapath);
      for (const link of ["host8", "ovs0", "up0"]) expect(await valuesOf(stage.machine, link)).toBe("1\n1\n");
    },
  );

  test.skipIf(isAbsent)(
    "a link that has given the host a router already is closed by the next ADD, which says so",
    async () => {
      await using stage = await openPage({ ...bare, isBefore: false }, datapath);
      const { machine, net } = stage, next = await machine.container("next");
      expect(await fatesIn(machine, net)).toMatchObject({ advertisement: "accepted", redirect: "accepted" });
      const { code, stderr } = await machine.run([PATCHBAY, "add", "lan", next.netnsPath]);
      expect({ code, stderr }).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("router advertisements on host100"),
      });
      expect(await valuesOf(machine, "host100")).toBe("0\n0\n");
    },
  );
});
