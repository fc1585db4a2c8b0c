/**
 * What tuning changes in a container, and that DEL restores it.
 *
 * Longer than 300 lines: all tests change and compare one link and its sysctls, with the same helpers.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { network } from "../support/network.ts";
import { cni, GO_PLUGINS, patchbayPlugins } from "../support/plugins.ts";

const MAC = "c2:11:22:33:44:55";
const SETTINGS = { mac: MAC, mtu: 1400, promisc: true, allmulti: true, txQLen: 500 };
const SYSCTL = {
  "net.ipv4.conf.IFNAME.arp_filter": "1",
  "net/core/somaxconn": "500",
  "net.ipv4.tcp_rmem": "4096 87380 6291456",
};

async function pair(machine: Machine, name = "c1", ifName = "eth0") {
  const container = await machine.container(name);
  const withoutV6 = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1";
  await machine.sh(`
    ${withoutV6}; ip netns exec ${name} ${withoutV6}
    ip link add host-${name} type veth peer name '${ifName}' address 0a:00:00:00:00:01 netns ${name}
    ip link set host-${name} up; ip -n ${name} link set '${ifName}' up`);
  const interfaces = [{ name: `host-${name}` }, {
    name: ifName,
    sandbox: container.netnsPath,
    mac: "0a:00:00:00:00:01",
  }];
  return { container, prevResult: { cniVersion: "1.1.0", interfaces } };
}

async function settings(machine: Machine, container: Container, ifName = "eth0") {
  const [link] = JSON.parse(await machine.sh(`ip -j link show ${ifName}`, { in: container }));
  const { address: mac, mtu, txqlen: txQLen, flags } = link;
  return { mac, mtu, promisc: flags.includes("PROMISC"), allmulti: flags.includes("ALLMULTI"), txQLen };
}

/** In the order of SYSCTL, each value's fields behind one another. */
async function sysctls(machine: Machine, container: Container): Promise<string> {
  const read = "cd /proc/sys/net; cat ipv4/conf/eth0/arp_filter core/somaxconn ipv4/tcp_rmem";
  return (await machine.sh(read, { in: container })).trim().split(/\s+/).join(" ");
}

const BACKUP = "/run/cni/tuning/ctr-c1_eth0.json";

test("ADD changes the link and the sysctls, DEL puts all back; the file is the reference plugin's", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", ...SETTINGS, sysctl: SYSCTL, prevResult });
  const moment = await quietMoment(machine);
  const before = await settings(machine, container);
  const { interfaces } = await net.add(container);
  expect(interfaces[1]).toEqual({ ...prevResult.interfaces[1], mac: MAC });
  expect(await settings(machine, container)).toEqual(SETTINGS);
  expect(await sysctls(machine, container)).toBe("1 500 4096 87380 6291456");
  expect(await machine.sh(`cat ${BACKUP}`)).toBe(
    `{\n "mac": "${before.mac}",\n "promisc": false,\n "mtu": 1500,\n "allmulti": false,\n "txQLen": 1000\n}`,
  );
  expect((await machine.sh(`stat -c %a ${BACKUP}`)).trim()).toBe("600");
  await net.check(container);
  for (const _ of [1, 2]) await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a repeated ADD keeps what was first, and a failed one what the first made", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", mtu: 1400, sysctl: SYSCTL, prevResult });
  const moment = await quietMoment(machine);
  await net.add(container);
  const first = await machine.sh(`cat ${BACKUP}`);
  await net.add(container, { conf: { mtu: 1300 } });
  expect(await machine.sh(`cat ${BACKUP}`)).toBe(first);
  const failed = await net.call("ADD", container, { conf: { mtu: 99_999, txQLen: 7 } });
  expect([failed.code, failed.json.code]).toEqual([1, 7]);
  expect(await machine.sh(`cat ${BACKUP}`)).toBe(first);
  expect((await settings(machine, container)).mtu).toBe(1300);
  // What the first did not change is put back from where the second found it.
  await net.add(container, { conf: { mtu: 0, txQLen: 7 } });
  expect(JSON.parse(await machine.sh(`cat ${BACKUP}`))).toEqual({ mtu: 1500, txQLen: 1000 });
  await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("the file goes without namespace, link, prevResult or ledger; the link is put back where it is", async () => {
  await using machine = await openMachine();
  for (const loss of ["nothing", "ledger", "ledger and prevResult", "CNI_NETNS", "namespace", "link", "file"]) {
    const { container, prevResult } = await pair(machine);
    const net = network(machine, { type: "tuning", ...SETTINGS, prevResult });
    const before = await settings(machine, container);
    await net.add(container);
    if (loss.startsWith("ledger")) await machine.sh("rm -rf /run/patchbay");
    if (loss === "file") await machine.sh(`rm ${BACKUP}`);
    if (loss === "link") await machine.sh("ip link del host-c1");
    if (loss === "namespace") await machine.removeContainer(container);
    const change = {
      env: loss === "CNI_NETNS" ? { CNI_NETNS: "" } : {},
      conf: loss.endsWith("prevResult") ? { prevResult: undefined } : {},
    };
    for (const _ of [1, 2]) await net.del(container, change);
    expect([loss, await machine.sh("find /run/cni /run/patchbay -type f ! -name 'serve~*' 2>/dev/null || true")])
      .toEqual([loss, ""]);
    if (!["CNI_NETNS", "namespace", "link"].includes(loss)) {
      expect([loss, await settings(machine, container)]).toEqual([loss, before]);
    }
    await machine.sh("ip link del host-c1 2>/dev/null || true");
    if (loss !== "namespace") await machine.removeContainer(container);
  }
});

test("an id that is too long for a file name: ADD fails, and leaves nothing for DEL to fail at", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", ...SETTINGS, prevResult }), containerId = "a".repeat(250);
  const before = await settings(machine, container);
  expect((await net.call("ADD", container, { containerId })).json.msg).toMatch(/file name too long$/);
  await net.del(container, { containerId });
  expect(await settings(machine, container)).toEqual(before);
});

test("DEL without a ledger puts back what it can, whatever is wrong in configuration and CNI_ARGS", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", mtu: 1400, prevResult });
  const before = await settings(machine, container);
  const wrong = [{ conf: { sysctl: { "net.core.somaxconn": 9 }, mtu: "1400", args: 7 } }, { args: "MAC" }, {
    conf: { prevResult: "none", mac: "hello" },
  }];
  for (const change of wrong) {
    await net.add(container);
    await machine.sh("rm -r /run/patchbay");
    await net.del(container, change);
    expect(await settings(machine, container)).toEqual(before);
    expect(await machine.sh("ls /run/cni/tuning")).toBe("");
  }
  // Nobody would know whose address to give back.
  expect((await net.call("DEL", container, { conf: { ipam: "host-local" } })).json.code).toBe(7);
});

test("another link by the name, and a sysctl that somebody changed since, are left alone", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", ...SETTINGS, sysctl: SYSCTL, prevResult });
  await net.add(container);
  await machine.sh("echo 700 > /proc/sys/net/core/somaxconn", { in: container });
  await machine.sh("ip -n c1 link del eth0; ip link add other mtu 1450 type veth peer name eth0 mtu 1450 netns c1");
  await net.del(container);
  expect((await settings(machine, container)).mtu).toBe(1450);
  expect(await sysctls(machine, container)).toStartWith("0 700 ");
  expect(await sysctls(machine, container)).not.toContain("87380");
});

test("a sysctl that another one changed as well gets its value back", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const forwarding = () =>
    machine.sh("cd /proc/sys/net/ipv4/conf; cat eth0/forwarding all/forwarding", { in: container });
  await machine.sh("echo 1 > /proc/sys/net/ipv4/conf/eth0/forwarding", { in: container });
  const before = await forwarding();
  const sysctl = { "net.ipv4.conf.IFNAME.forwarding": "0", "net.ipv4.conf.all.forwarding": "1" };
  const net = network(machine, { type: "tuning", sysctl, prevResult });
  await net.add(container);
  await net.del(container);
  expect(await forwarding()).toBe(before);
});

test("attachments of the reference plugin: CHECK and DEL, ours and theirs", async () => {
  await using machine = await openMachine();
  const { container, prevResult: newer } = await pair(machine);
  const prevResult = { ...newer, cniVersion: "1.0.0" };
  // Debian's knows no txQLen, and CHECK nothing of fields.
  const { txQLen: _, ...known } = SETTINGS;
  const conf = { type: "tuning", ...known, sysctl: { "net.core.somaxconn": "500" }, cniVersion: "1.0.0", prevResult };
  const ours = network(machine, conf), theirs = network(machine, conf, GO_PLUGINS);
  const before = await settings(machine, container);
  await theirs.add(container);
  await ours.check(container);
  await ours.add(container, { conf: { mtu: 1300 } });
  for (const side of [ours, ours]) await side.del(container);
  expect(await settings(machine, container)).toEqual(before);
  await theirs.add(container);
  await ours.del(container);
  expect(await settings(machine, container)).toEqual(before);

  await ours.add(container);
  await theirs.check(container);
  await theirs.del(container);
  expect(await settings(machine, container)).toEqual(before);
  expect(await machine.sh("find /run/cni -type f")).toBe("");
});

test("CHECK lets what is not configured be as it likes", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", mtu: 1400, prevResult });
  await net.add(container);
  await machine.sh("ip link set eth0 address 0a:00:00:00:00:09 promisc on", { in: container });
  await net.check(container);
});

test("of the MAC's sources args goes before the capability, CNI_ARGS and the configuration", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", mac: "c2:00:00:00:00:01", prevResult });
  const runtimeConfig = { mac: "c2:00:00:00:00:03" }, args = { cni: { mac: "c2:00:00:00:00:04" } };
  const variable = "IgnoreUnknown=1;K=V;MAC=c2:00:00:00:00:02";
  const rows: [change: Record<string, unknown>, mac: string][] = [
    [{}, "c2:00:00:00:00:01"],
    [{ args: variable }, "c2:00:00:00:00:02"],
    [{ args: variable, conf: { runtimeConfig } }, "c2:00:00:00:00:03"],
    [{ args: variable, conf: { runtimeConfig, args } }, "c2:00:00:00:00:04"],
    [
      { conf: { args: { cni: { sysctl: { "net.core.somaxconn": "77" }, promisc: true, mtu: 1234 } } } },
      "c2:00:00:00:00:01",
    ],
  ];
  for (const [change, mac] of rows) {
    expect((await net.add(container, change)).interfaces[1].mac).toBe(mac);
    expect((await settings(machine, container)).mac).toBe(mac);
    if (rows.at(-1)![0] === change) {
      expect(await settings(machine, container)).toMatchObject({ mtu: 1234, promisc: true });
      expect(await sysctls(machine, container)).toContain(" 77 ");
    }
    await net.del(container, change);
  }
});

test("of the other settings args goes before the configuration, also when it says less", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const more = { mtu: 1300, txQLen: 70, promisc: true, allmulti: true, sysctl: { "net.core.somaxconn": "70" } };
  const less = { mtu: 1200, txQLen: 60, promisc: false, allmulti: false, sysctl: { "net.core.somaxconn": "60" } };
  const seen = async () => ({
    ...await settings(machine, container),
    somaxconn: (await machine.sh("cat /proc/sys/net/core/somaxconn", { in: container })).trim(),
  });
  const shown = ({ sysctl, ...rest }: typeof more) => ({ ...rest, somaxconn: sysctl["net.core.somaxconn"] });
  for (const [conf, cni] of [[more, less], [less, more]] as const) {
    const net = network(machine, { type: "tuning", ...conf, prevResult });
    await net.add(container, { conf: { args: { cni } } });
    expect(await seen()).toMatchObject(shown(cni));
    await net.check(container, { conf: { args: { cni } } });
    await net.del(container, { conf: { args: { cni } } });
  }
});

test("an interface name with dots is reached through IFNAME", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine, "c1", "eth0.7$&");
  const net = network(machine, {
    type: "tuning",
    sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1", "net.ipv4.route.flush": "1" },
    prevResult,
  });
  const read = () => machine.sh("cat '/proc/sys/net/ipv4/conf/eth0.7$&/arp_filter'", { in: container });
  await net.add(container, { ifName: "eth0.7$&" });
  expect(await read()).toBe("1\n");
  await net.check(container, { ifName: "eth0.7$&" });
  await net.del(container, { ifName: "eth0.7$&" });
  expect(await read()).toBe("0\n");
});

test("a failed ADD puts back what it had changed, the sysctls before it too", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const moment = await quietMoment(machine);
  const net = network(machine, { type: "tuning", prevResult });
  for (
    const conf of [
      { sysctl: { ...SYSCTL, "net.ipv4.tcp_syncookies": "many" } },
      { sysctl: SYSCTL, ...SETTINGS, mac: "01:00:5e:00:00:01" },
      { sysctl: SYSCTL, ...SETTINGS, mtu: 70_000 },
    ]
  ) {
    const answer = await net.call("ADD", container, { conf });
    expect([answer.code, answer.json.code]).toEqual([1, 7]);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
});

test("refusals: nothing is changed, and the reason says which key and value", async () => {
  await using machine = await openMachine();
  const { container, prevResult } = await pair(machine);
  const moment = await quietMoment(machine);
  const sysctl = (key: string) => ({ mtu: 1400, sysctl: { "net.core.somaxconn": "9", [key]: "1" } });
  const refused: [conf: Record<string, unknown> | string, code: number, told: RegExp][] = [
    [sysctl("kernel.panic"), 7, /^invalid net sysctl key: "kernel\/panic" .*kernel\.panic/],
    [sysctl("net/../kernel/panic"), 7, /^invalid net sysctl key: "net\/\/\/\/kernel/],
    [sysctl("net....kernel.panic"), 7, /^invalid net sysctl key/],
    [sysctl("/net/core/somaxconn"), 7, /^invalid net sysctl key: "\/net/],
    [sysctl("/proc/sys/net/core/somaxconn"), 7, /^invalid net sysctl key/],
    [sysctl("net."), 7, /^invalid net sysctl key/],
    [sysctl("netx.core"), 7, /^invalid net sysctl key/],
    [sysctl("net.core.somaxconn\0"), 7, /^invalid net sysctl key/],
    [sysctl("net.core"), 7, /failed to set sysctl "net\/core" to "1".*no such key/],
    [sysctl("net.core.nonesuch"), 7, /failed to set sysctl "net\/core\/nonesuch" to "1".*no such key/],
    [
      sysctl("net.ipv4.tcp_available_congestion_control"),
      7,
      /to "1".*permission denied the kernel does not let it be written/,
    ],
    [sysctl("net/core/somaxconn"), 7, /^duplicated sysctl keys are not allowed/],
    [sysctl("__proto__"), 7, /^invalid net sysctl key: "__proto__"/],
    [{ mtu: "1400" }, 7, /"mtu".*1400/],
    [{ sysctl: { "net.core.somaxconn": 5 } }, 7, /sysctl.*5/],
    [{ prevResult: undefined }, 7, /^Required prevResult missing/],
    [
      `{"cniVersion":"1.1.0","name":"net","type":"tuning","Sysctl":{"net.core.somaxconn":"1","net.core.somaxco\\u006en" : "2"}}`,
      7,
      /^duplicated sysctl keys are not allowed "net.core.somaxconn" is there twice/,
    ],
  ];
  for (const [conf, code, told] of refused) {
    const whole = { cniVersion: "1.1.0", name: "net", type: "tuning", prevResult };
    const answer = await cni(machine, patchbayPlugins(), {
      plugin: "tuning",
      command: "ADD",
      container,
      conf: typeof conf === "string" ? conf : { ...whole, ...conf },
    });
    expect([conf, answer.code, answer.json?.code]).toEqual([conf, 1, code]);
    expect(`${answer.json.msg} ${answer.json.details ?? ""}`).toMatch(told);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("the host's allow-list: expressions that match anywhere in a key; what cannot be read as Go does is refused", async () => {
  await using machine = await openMachine();
  // A private /etc, with what is in the machine's.
  await machine.sh("mkdir /run/etc; cp -a /etc/. /run/etc; mount --bind /run/etc /etc; mkdir -p /etc/cni/tuning");
  const { container, prevResult } = await pair(machine);
  const net = network(machine, { type: "tuning", prevResult });
  const rows: [list: string, key: string, told?: RegExp][] = [
    [
      "",
      "net.core.somaxconn",
      /^Sysctl net\.core\.somaxconn is not allowed\. Only the following sysctls are allowed: \[\]/,
    ],
    ["\n  ^net\\.core\\.somaxconn$  \n\n", "net.core.somaxconn"],
    ["core", "net.core.somaxconn"],
    ["^core", "net.core.somaxconn", /not allowed.*\[\^core\]/],
    ["a\nIFNAME\\.arp\\_filter", "net.ipv4.conf.IFNAME.arp_filter"],
    ["conf.eth0", "net.ipv4.conf.IFNAME.arp_filter", /not allowed/],
    ["so\\-x|[a\\-o]maxconn", "net.core.somaxconn"],
    ["(", "net.core.somaxconn", /no regular expression: \(/],
    ["[[:alpha:]]+", "net.core.somaxconn", /no regular expression: .*not supported/],
    ["(?!x)net", "net.core.somaxconn", /no regular expression/],
    ["(?P<n>net)", "net.core.somaxconn", /no regular expression/],
    ["\\Anet", "net.core.somaxconn", /no regular expression/],
  ];
  for (const [list, key, told] of rows) {
    await Bun.write(`/proc/${machine.pid}/root/etc/cni/tuning/allowlist.conf`, list);
    const answer = await net.call("ADD", container, { conf: { sysctl: { [key]: "1" } } });
    expect([list, answer.code, answer.json.code]).toEqual([list, told ? 1 : 0, told ? 7 : undefined]);
    if (told) expect(`${answer.json.msg} ${answer.json.details ?? ""}`).toMatch(told);
    const status = await net.call("STATUS", undefined, { conf: { sysctl: { [key]: "1" } } });
    expect([list, status.json?.code]).toEqual([list, told ? 50 : undefined]);
    // DEL does not ask.
    await net.del(container, { conf: { sysctl: { [key]: "1" } } });
  }
});

test("GC puts back what an attachment that is not valid has changed", async () => {
  await using machine = await openMachine();
  const one = await pair(machine, "c1"), two = await pair(machine, "c2"), three = await pair(machine, "c3");
  const net = network(machine, { type: "tuning", ...SETTINGS });
  const before = await settings(machine, two.container);
  for (const { container, prevResult } of [one, two, three]) await net.add(container, { conf: { prevResult } });
  await machine.removeContainer(three.container);
  await net.gc([one.container]);
  expect(await settings(machine, one.container)).toEqual(SETTINGS);
  expect(await settings(machine, two.container)).toEqual(before);
  expect(await machine.sh("ls /run/cni/tuning")).toBe("ctr-c1_eth0.json\n");
});
