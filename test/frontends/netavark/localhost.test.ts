/** Published ports are reached by 127.0.0.1, and containers do not reach the host's 127.0.0.1. */
import { expect, test } from "bun:test";
import { startBus, startRealFirewalld } from "../../support/firewalld.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { netavark } from "../../support/netavark/netavark.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { serve } from "../../support/traffic.ts";

const OPEN = "/proc/sys/net/ipv4/conf/podman8/route_localnet";
const subnet = { subnet: "10.88.0.0/24", gateway: "10.88.0.1" };
const only4 = bridgeNetwork(8, { subnets: [subnet], ipv6_enabled: false });

/** Whether the bridge is open, and which containers are guarded. */
async function held(machine: Machine) {
  const { code, stdout } = await machine.run(["nft", "-j", "list", "map", "ip", "patchbay_localhost", "users"]);
  const users = code === 0 ? (stdout.match(/"id: (\d\d)/g) ?? []).map((each) => Number(each.slice(5))) : undefined;
  return { isOpen: await machine.sh(`cat ${OPEN} 2> /dev/null || echo gone`).then((text) => text.trim()), users };
}

async function succeed(machine: Machine, verb: "setup" | "teardown", container: Container, input: object, env = {}) {
  expect(await attach(machine, verb, container, input, env)).toMatchObject({ code: 0, stderr: "" });
}

for (
  const { name, network = only4, ports, env, isOpen } of [
    { name: "all addresses", ports: [published(8080, 80)], isOpen: true },
    { name: "all of version 4", ports: [published(8080, 80, { host_ip: "0.0.0.0" })], isOpen: true },
    { name: "127.0.0.1", ports: [published(8080, 80, { host_ip: "127.0.0.1" })], isOpen: true },
    { name: "none", ports: [], isOpen: false },
    { name: "another address", ports: [published(8080, 80, { host_ip: "192.0.2.1" })], isOpen: false },
    {
      name: "version 6 alone",
      network: bridgeNetwork(8),
      ports: [published(8080, 80, { host_ip: "::" })],
      isOpen: false,
    },
    {
      name: "a container without version 4",
      network: bridgeNetwork(8, { subnets: [{ subnet: "fd00:8::/64", gateway: "fd00:8::1" }] }),
      ports: [published(8080, 80)],
      isOpen: false,
    },
    {
      name: "an internal network",
      network: { ...only4, internal: true },
      ports: [published(8080, 80)],
      isOpen: false,
    },
    { name: "no firewall", env: { NETAVARK_FW: "none" }, ports: [published(8080, 80)], isOpen: false },
  ]
) {
  test(`ports of ${name}: the bridge is ${isOpen ? "open and guarded" : "closed"}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container(), input = containerIn([{ network }], 1, ports);
    await succeed(machine, "setup", container, input, env);
    expect(await held(machine)).toEqual(isOpen ? { isOpen: "1", users: [1] } : { isOpen: "0", users: undefined });
    await succeed(machine, "teardown", container, input, env);
    expect(await held(machine)).toEqual({ isOpen: "gone", users: undefined });
  });
}

test("the last container with ports closes the bridge, whichever it is, and also without a ledger or a namespace", async () => {
  await using machine = await openMachine();
  const [quiet, one, two] = [await machine.container(), await machine.container(), await machine.container()];
  const inputs = [1, 2, 3].map((number) =>
    containerIn([{ network: only4 }], number, number === 1 ? [] : [published(8000 + number, 80)])
  );
  await succeed(machine, "setup", quiet, inputs[0]!);
  for (const damage of ["true", "rm -r /run/patchbay/net8", "ip netns del c3"]) {
    await succeed(machine, "setup", one, inputs[1]!);
    await succeed(machine, "setup", two, inputs[2]!);
    expect(await held(machine)).toEqual({ isOpen: "1", users: expect.arrayContaining([2, 3]) });
    await machine.sh(damage);
    await attach(machine, "teardown", one, inputs[1]!);
    expect(await held(machine)).toEqual({ isOpen: "1", users: [3] });
    await attach(machine, "teardown", two, inputs[2]!);
    expect(await held(machine)).toEqual({ isOpen: "0", users: undefined });
  }
});

test("a setup that fails leaves the bridge as closed as it was", async () => {
  await using machine = await openMachine();
  const [first, failing] = [await machine.container(), await machine.container()];
  await succeed(machine, "setup", first, containerIn([{ network: only4 }], 1));
  await machine.sh("ip link add podman7 type veth peer name elsewhere");
  const input = containerIn([{ network: only4 }, { network: bridgeNetwork(7) }], 2, [published(8080, 80)]);
  expect((await attach(machine, "setup", failing, input)).code).toBe(1);
  expect(await held(machine)).toEqual({ isOpen: "0", users: undefined });
});

test("with firewalld's driver, too", async () => {
  await using machine = await openMachine();
  await using _bus = await startBus(machine);
  await using _firewalld = await startRealFirewalld(machine);
  const container = await machine.container(), env = { NETAVARK_FW: "firewalld" };
  await using server = await serve(machine, container, "tcp", 80);
  const input = containerIn([{ network: only4 }], 1, [published(8080, 80)]);
  await succeed(machine, "setup", container, input, env);
  expect(await held(machine)).toEqual({ isOpen: "1", users: [1] });
  expect(await server.ask(undefined, "127.0.0.1", 8080)).toBe("10.88.0.1");
  await succeed(machine, "teardown", container, input, env);
  expect(await held(machine)).toEqual({ isOpen: "gone", users: undefined });
});

test("a bridge that was found open is guarded for who comes, and serves who was there until they go", async () => {
  await using machine = await openMachine();
  const [old, comes] = [await machine.container(), await machine.container()];
  await using server = await serve(machine, old, "tcp", 80);
  const before = containerIn([{ network: only4 }], 1, [published(8080, 80)]),
    after = containerIn([{ network: only4 }], 2);
  await succeed(machine, "setup", old, before);
  // As netavark leaves it: open, without a guard, and not in the ledger.
  await machine.sh(`
    nft delete table ip patchbay_localhost
    sed -i '/"localhost-access"/d' /run/patchbay/net8/*
    echo 1 > /proc/sys/net/ipv6/conf/podman8/accept_ra`);
  await succeed(machine, "setup", comes, after);
  expect(await held(machine)).toEqual({ isOpen: "1", users: [2] });
  expect(await machine.sh("cat /proc/sys/net/ipv6/conf/podman8/accept_ra")).toBe("0\n");
  expect(await server.ask(undefined, "127.0.0.1", 8080)).toBe("10.88.0.1");
  await succeed(machine, "teardown", comes, after);
  expect(await held(machine)).toEqual({ isOpen: "1", users: undefined });
  expect(await server.ask(undefined, "127.0.0.1", 8080)).toBe("10.88.0.1");
  await succeed(machine, "teardown", old, before);
  expect(await held(machine)).toEqual({ isOpen: "gone", users: undefined });
});

test("a read-only /proc/sys that is right already does, and a new bridge that is open there is guarded", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), input = containerIn([{ network: bridgeNetwork(8) }], 1);
  const inside = "net.ipv6.conf.default.keep_addr_on_down=1 net.ipv6.conf.default.disable_ipv6=0";
  await machine.sh(`sysctl -qw net.ipv6.conf.lo.disable_ipv6=0 ${inside}`, { in: container });
  await machine.sh(`cd /proc/sys/net; echo 1 | tee ipv4/ip_forward ipv6/conf/all/forwarding
    echo 2 > ipv4/conf/default/rp_filter; echo 0 > ipv6/conf/default/accept_dad
    echo 0 > ipv4/conf/default/accept_redirects; echo 1 > ipv4/conf/default/route_localnet
    cd /; mount -t proc -o ro proc /proc`);
  await succeed(machine, "setup", container, input);
  expect(await held(machine)).toEqual({ isOpen: "1", users: [1] });
  expect((await machine.run([PATCHBAY, "inspect", "net8"])).code).toBe(0);
  await succeed(machine, "teardown", container, input);
  expect(await held(machine)).toEqual({ isOpen: "gone", users: undefined });
});

test("what somebody flushed comes back by repair and by the reload", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await succeed(machine, "setup", container, containerIn([{ network: only4 }], 1, [published(8080, 80)]));
  const table = () => machine.sh("nft list table ip patchbay_localhost | sed 's/packets [0-9]* bytes [0-9]*//'");
  const before = await table(),
    mends = {
      repair: async () => void await machine.sh(`${PATCHBAY} repair`),
      reload: async () => void await netavark(machine, ["-c", ND, "firewall-reload"]),
    };
  for (const mend of Object.values(mends)) {
    for (const damage of ["nft flush ruleset", "nft flush chain ip patchbay_localhost prerouting"]) {
      await machine.sh(damage);
      expect((await machine.run([PATCHBAY, "inspect", "net8"])).stdout).toContain("patchbay_localhost");
      await mend();
      expect(await table()).toBe(before);
    }
  }
});
