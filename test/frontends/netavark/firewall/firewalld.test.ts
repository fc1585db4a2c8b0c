/** netavark's firewall driver `firewalld`, with a real firewalld: its objects, real packets, and what stays. */
import { expect, test } from "bun:test";
import { startBus, startFirewalld, startRealFirewalld } from "../../../support/firewalld.ts";
import { type Container, type Machine, openMachine } from "../../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../../support/netavark/attached.ts";
import { ND } from "../../../support/netavark/names.ts";
import { netavark, netavarkProgram } from "../../../support/netavark/netavark.ts";
import { isShortRun } from "../../../support/share.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping, serve } from "../../../support/traffic.ts";
import { RandomKills } from "../../../support/random-kills.ts";

const env = { NETAVARK_FW: "firewalld" };
const network = bridgeNetwork(8);
const POLICIES = ["netavark_portfwd", "netavark_host_fwd"];

async function succeed(machine: Machine, verb: "setup" | "teardown", container: Container, input: object, more = {}) {
  expect(await attach(machine, verb, container, input, { ...env, ...more })).toMatchObject({ code: 0, stderr: "" });
}

/** The sources of the zone, and all forwarded ports and rich rules, as firewall-cmd(1) writes them. */
async function held(machine: Machine): Promise<string[]> {
  return (await machine.sh("python3 -", { stdin: HELD })).split("\n").filter(Boolean).sort();
}

/** A call of firewall-cmd for each takes seconds of a processor. */
const HELD = `
import dbus
name = "org.fedoraproject.FirewallD1"
firewalld = dbus.SystemBus().get_object(name, "/org/fedoraproject/FirewallD1")
print(" ".join(firewalld.getSources("netavark_zone", dbus_interface=name + ".zone")))
for policy in ["netavark_portfwd", "netavark_host_fwd"]:
    settings = firewalld.getPolicySettings(policy, dbus_interface=name + ".policy")
    for port in settings.get("forward_ports", []): print("port=%s:proto=%s:toport=%s:toaddr=%s" % tuple(port))
    for rule in settings.get("rich_rules", []): print(rule)
`;

/** A namespace beside the containers, at 198.51.100.2; the host is 198.51.100.1 to it, and has 192.0.2.1 too. */
async function outside(machine: Machine): Promise<Container> {
  const other = await machine.container("outside");
  await machine.sh(`
    ip link add uplink type veth peer name eth0 netns outside
    ip addr add 198.51.100.1/24 dev uplink; ip -6 addr add fd00:51::1/64 dev uplink nodad; ip link set uplink up
    ip addr add 192.0.2.1/32 dev uplink
    ip -n outside addr add 198.51.100.2/24 dev eth0
    ip -n outside -6 addr add fd00:51::2/64 dev eth0 nodad
    ip -n outside link set eth0 up
    ip -n outside route add default via 198.51.100.1
  `);
  return other;
}

test("published ports in its policies, of each form, by real packets", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using _firewalld = await startRealFirewalld(machine);
  const container = await machine.container(), other = await outside(machine);
  await using server = await serve(machine, container, "tcp", 80);
  await using flows = await serve(machine, container, "udp", 80);
  await using high = await serve(machine, container, "tcp", 9002);
  const ports = [
    published(8080, 80),
    published(8081, 80, { host_ip: "192.0.2.1" }),
    published(8082, 80, { host_ip: "127.0.0.1" }),
    published(8083, 80, { host_ip: "::" }),
    published(8080, 80, { protocol: "udp" }),
    published(7000, 9000, { range: 5 }),
    published(9001, 9001, { range: 5 }),
  ];
  const input = containerIn([{ network }], 1, ports);
  await succeed(machine, "setup", container, input);
  expect(await ping(machine, container, "198.51.100.2")).toBe(true);
  for (const port of [8080, 7002]) {
    const asked = port === 7002 ? high : server;
    // netavark's policies masquerade what comes into its zone; firewalld does so in IPv4 only.
    expect([port, await asked.ask(other, "198.51.100.1", port)]).toEqual([port, "10.88.0.1"]);
    expect([port, await asked.ask(undefined, "127.0.0.1", port)]).toEqual([port, "10.88.0.1"]);
    expect([port, await asked.ask(other, "fd00:51::1", port)]).toEqual([port, "fd00:51::2"]);
  }
  expect(await high.ask(other, "198.51.100.1", 9002)).toBe("10.88.0.1");
  expect(await flows.ask(other, "198.51.100.1", 8080)).toBe("10.88.0.1");
  expect(await server.ask(other, "192.0.2.1", 8081)).toBe("10.88.0.1");
  expect(await server.ask(other, "198.51.100.1", 8081)).toBeUndefined();
  expect(await server.ask(undefined, "127.0.0.1", 8082)).toBe("10.88.0.1");
  expect(await server.ask(other, "198.51.100.1", 8082)).toBeUndefined();
  expect(await server.ask(other, "fd00:51::1", 8083)).toBe("fd00:51::2");
  expect(await server.ask(other, "198.51.100.1", 8083)).toBeUndefined();
  await succeed(machine, "teardown", container, input);
  expect(await held(machine)).toEqual([]);
  expect(await server.ask(other, "198.51.100.1", 8080)).toBeUndefined();
});

const ports = [published(8080, 80), published(8081, 80, { host_ip: "192.0.2.1" })];

test("as long as the network has containers; a namespace that is gone; no ledger; nothing of others", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startRealFirewalld(machine);
  const [one, two] = [await machine.container("one"), await machine.container("two")];
  const first = containerIn([{ network }], 1, ports), second = containerIn([{ network }], 2, [published(9090, 90)]);
  await succeed(machine, "setup", two, second);
  const ofSecond = await held(machine);
  expect(ofSecond).toEqual([
    "10.88.0.0/24 fd00:8::/64",
    "port=9090:proto=tcp:toport=90:toaddr=10.88.0.12",
    "port=9090:proto=tcp:toport=90:toaddr=fd00:8::12",
    'rule family="ipv4" destination address="127.0.0.1" forward-port port="9090" protocol="tcp" to-port="90" ' +
    'to-addr="10.88.0.12"',
  ]);
  expect(await machine.sh(`cat ${ND}/firewall/firewall-driver`)).toBe("firewalld");
  expect((await machine.run(["nft", "list", "table", "inet", "netavark"])).code).toBe(1);

  await succeed(machine, "setup", one, first);
  expect(await held(machine)).toHaveLength(ofSecond.length + 4);
  await machine.removeContainer(one);
  expect(await attach(machine, "teardown", one, first, env)).toMatchObject({ code: 0 });
  expect(await held(machine)).toEqual(ofSecond);

  // netavark writes no ledger.
  const again = await machine.container("again");
  await succeed(machine, "setup", again, first);
  // What another port led to goes too, as with netavark.
  const [all, local] = POLICIES.map((policy) => `--policy=${policy}`);
  await firewalld.command(all!, "--add-forward-port=port=7777:proto=tcp:toport=77:toaddr=10.88.0.11");
  await firewalld.command(
    local!,
    `'--add-rich-rule=rule family="ipv4" destination address="127.0.0.1" forward-port port="7777" protocol="tcp" ` +
      `to-port="77" to-addr="10.88.0.11"'`,
  );
  expect(await held(machine)).toHaveLength(ofSecond.length + 6);
  await machine.sh("rm -r /run/patchbay");
  await succeed(machine, "teardown", again, first);
  expect(await held(machine)).toEqual(ofSecond);

  // podman gives addresses and ports to the next one, also when the teardown before has failed.
  const heir = await machine.container("heir"), same = { ...first, container_id: "e".repeat(64) };
  await succeed(machine, "setup", again, first);
  await machine.sh("ip -n again link del eth0");
  await succeed(machine, "setup", heir, same);
  const ofBoth = await held(machine);
  expect(ofBoth).toHaveLength(ofSecond.length + 4);
  expect(await attach(machine, "teardown", again, first, env)).toMatchObject({ code: 1 });
  expect(await held(machine)).toEqual(ofBoth);
  await succeed(machine, "teardown", heir, same);
  await succeed(machine, "teardown", two, second);
  expect(await held(machine)).toEqual([]);
});

test("what a reload or a crash of firewalld has lost comes back, and nothing twice", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startRealFirewalld(machine);
  const container = await machine.container(), input = containerIn([{ network }], 1, ports);
  await succeed(machine, "setup", container, input);
  const before = await held(machine);
  const reload = () => netavark(machine, ["-c", ND, "firewall-reload"]);
  expect(await reload()).toMatchObject({ code: 0 });
  expect(await held(machine)).toEqual(before);
  await firewalld.command("--reload");
  expect(await held(machine)).toEqual([]);
  expect(await reload()).toMatchObject({ code: 0 });
  expect(await held(machine)).toEqual(before);

  const service = machine.start([netavarkProgram(), "-c", ND, "firewalld-reload"]);
  const isBack = () => held(machine).then((found) => found.join() === before.join(), () => false);
  await firewalld.command("--reload");
  await untilTrue(isBack, Boolean);
  await firewalld.kill();
  await firewalld.start();
  await untilTrue(isBack, Boolean);
  service.kill("SIGTERM");
  await service.exited;

  await firewalld.kill();
  expect(await attach(machine, "teardown", container, input, env)).toMatchObject({ code: 0 });
  expect(await machine.sh("ip -br link show type bridge")).toBe("");
  await firewalld.start();
  expect(await held(machine)).toEqual([]);
});

test("setup killed at any moment: teardown leaves nothing", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using _firewalld = await startRealFirewalld(machine);
  const input = containerIn([{ network }], 1, ports), kills = new RandomKills();
  for (let round = 0; round < (isShortRun ? 3 : 12); round++) {
    const container = await machine.container(`c${round}`);
    const call = machine.start([
      "env",
      "NETAVARK_FW=firewalld",
      netavarkProgram(),
      "-c",
      ND,
      "setup",
      container.netnsPath,
    ]);
    call.stdin.write(JSON.stringify(input));
    await call.stdin.end();
    await kills.kill(call);
    if (round % 2 === 0) await machine.removeContainer(container);
    // The link may have existed already, or not.
    await attach(machine, "teardown", container, input, env);
    expect(await held(machine).catch(() => [])).toEqual([]);
    expect(await machine.sh("ip -br link show type bridge; ls /run/patchbay/net 2>/dev/null || true")).toBe("");
  }
  expect(kills.killed).toBeGreaterThan(0);
});

test("without firewalld: refused with the cause, and nothing is made", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), input = containerIn([{ network }], 1, ports);
  const refused = async (text: string) => {
    const { code, json } = await attach(machine, "setup", container, input, env);
    expect([code, json.error]).toEqual([1, expect.stringContaining(text)]);
    expect(await machine.sh("ip -br link show type bridge; ip -br -n c1 link show eth0 2>/dev/null || true")).toBe(
      "",
    );
  };
  const NO_BUS =
    "Error retrieving dbus connection for requested firewall backend: nobody listens at unix:path=/var/run/";
  await refused(NO_BUS);
  expect(await attach(machine, "teardown", container, input, env)).toMatchObject({ code: 0 });
  await using _bus = await startBus(machine);
  await refused("firewalld does not run; the firewall driver firewalld needs it");
});

test("internal networks and networks that it does not manage are none of its business", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using firewalld = await startRealFirewalld(machine);
  const container = await machine.container();
  await machine.sh("ip link add own type bridge; ip link set own up");
  const internal = bridgeNetwork(8, { internal: true });
  const unmanaged = bridgeNetwork(9, { network_interface: "own", options: { mode: "unmanaged" } });
  const input = containerIn([{ network: internal }, { network: unmanaged }], 1, ports);
  await succeed(machine, "setup", container, input);
  expect(await firewalld.command("--get-zones")).not.toContain("netavark");
  // What keeps the internal one's containers in is a table of our own.
  const closed = () => machine.run(["nft", "list", "map", "inet", "patchbay_internal", "bridges"]);
  for (const reload of [false, true]) {
    if (reload) await firewalld.command("--reload");
    expect((await closed()).stdout).toContain('"podman8"');
  }
  await succeed(machine, "teardown", container, input);
  expect((await closed()).code).toBe(1);
});

test("aardvark-dns with another port: a rule leads there, as long as the network has containers", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using _firewalld = await startRealFirewalld(machine);
  const named = bridgeNetwork(8, { dns_enabled: true }), port = { NETAVARK_DNS_PORT: "1553" };
  const [one, two] = [await machine.container("one"), await machine.container("two")];
  const [first, second] = [containerIn([{ network: named }], 1), containerIn([{ network: named }], 2)];
  const options = ["-a", "/usr/lib/podman/aardvark-dns", "-c", ND];
  const call = (verb: string, { netnsPath }: Container, input: object) =>
    netavark(machine, [...options, verb, netnsPath], input, { env: { ...env, ...port } });
  await machine.sh(`mkdir -p ${ND}`);
  expect(await call("setup", one, first)).toMatchObject({ code: 0 });
  expect(await call("setup", two, second)).toMatchObject({ code: 0 });
  expect(await held(machine)).toEqual([
    "10.88.0.0/24 fd00:8::/64",
    'rule family="ipv4" destination address="10.88.0.1" forward-port port="53" protocol="udp" to-port="1553" ' +
    'to-addr="10.88.0.1"',
    'rule family="ipv6" destination address="fd00:8::1" forward-port port="53" protocol="udp" to-port="1553" ' +
    'to-addr="fd00:8::1"',
  ]);
  // It is told of the second container, and reads the file when it comes to it.
  const ask = ["busybox", "nslookup", "-type=a", "web2.dns.podman", "10.88.0.1"];
  await untilTrue(() => machine.run(ask, { in: one }), ({ stdout }) => stdout.includes("10.88.0.12"));
  expect(await call("teardown", one, first)).toMatchObject({ code: 0 });
  expect(await held(machine)).toHaveLength(3);
  expect(await call("teardown", two, second)).toMatchObject({ code: 0 });
  expect(await held(machine)).toEqual([]);
});

test("StrictForwardPorts: the driver nftables refuses ports, since firewalld would drop them", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  const container = await machine.container(), input = containerIn([{ network }], 1, ports);
  const without = containerIn([{ network }], 1), warned = { RUST_LOG: "netavark=warn" };
  for (const [value, code, text] of [["yes", 1, ""], ["no", 0, ""], ["maybe", 0, "value from StrictForwardPorts"]]) {
    await using _firewalld = await startFirewalld(machine, String(value));
    const { json, stderr, ...told } = await attach(machine, "setup", container, input, warned);
    expect([value, told.code]).toEqual([value, code]);
    expect(stderr).toContain(String(text));
    if (code === 1) {
      expect(json.error).toBe("Port forwarding not possible as firewalld StrictForwardPorts enabled");
      expect(await machine.sh("ip -br link show type bridge")).toBe("");
      expect(await attach(machine, "setup", container, without)).toMatchObject({ code: 0 });
    }
    expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0 });
  }
});
