/** The package in a program of its own: what each function does in the kernel, and what it refuses. */
import { expect, test } from "bun:test";
import { untilGone } from "../../support/gone.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { Library } from "../../support/library/installed.ts";
import { attachmentOf, conf, CONFIGURATIONS, machineWithNetwork, options } from "../../support/library/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { ping, serve } from "../../support/traffic.ts";

// A resident serves none of these.
delete process.env.PATCHBAY_TEST_RESIDENT;

test("every function, with what it does in the kernel", async () => {
  await using machine = await machineWithNetwork();
  const container = await machine.container("c1"), c1 = attachmentOf("c1");
  await using library = await Library.open(machine, { options });
  const before = { ...c1, capabilities: { portMappings: [{ hostPort: 9, containerPort: 9 }] } };
  await library.must("add", "net", before);
  await library.must("del", "net", before);
  const moment = await quietMoment(machine);

  expect(await library.must("networks")).toEqual([{
    file: `${CONFIGURATIONS}/net.conflist`,
    name: "net",
    cniVersion: "1.0.0",
    state: "ok",
    plugins: ["bridge+host-local", "portmap"],
    pools: [expect.objectContaining({ subnets: ["10.1.0.0/24"], leased: 0 })],
    fixedAddresses: [],
    problems: [],
    differences: [],
    warnings: [],
  }]);
  const network = await library.must("network", "net");
  expect(network).toMatchObject({ name: "net", path: `${CONFIGURATIONS}/net.conflist` });
  const planned = await library.must("plan", network);
  expect(planned.map(({ type, obstacles }: never) => ({ type, obstacles }))).toEqual([
    { type: "bridge", obstacles: [] },
    { type: "portmap", obstacles: [] },
  ]);
  expect(await leftSince(moment, machine)).toEqual([]);

  await using server = await serve(machine, container, "tcp");
  const published = { ...c1, capabilities: { portMappings: [{ hostPort: 8080, containerPort: server.port }] } };
  const result = await library.must("add", network, published);
  // As of CNI 1.1, whatever the network's version is.
  expect(result.cniVersion).toBe("1.1.0");
  const address = result.ips[0].address.split("/")[0];
  expect(await machine.sh("ip -o -4 addr show eth0", { in: container })).toContain(`inet ${address}/24`);
  expect(await ping(machine, undefined, address)).toBe(true);
  expect(await server.ask(undefined, "10.1.0.1", 8080)).toBeDefined();
  await library.must("check", network, published);
  expect(await library.must("inspect", { network: "net", containerId: "c1" })).toEqual([
    expect.objectContaining({ containerId: "c1", state: "ok", addresses: [`${address}/24`] }),
  ]);
  expect(await library.must("inspect", { network: "other" })).toEqual([]);
  expect(await library.must("status", network)).toEqual([expect.objectContaining({ leased: 1 })]);
  expect((await library.must("plan", network, published))[0].obstacles).toEqual([expect.stringContaining("eth0")]);

  // The command line sees the same, and holds the same locks.
  expect((await machine.run([PATCHBAY, "inspect", "net"])).code).toBe(0);
  await machine.sh("ip addr flush dev eth0", { in: container });
  const differs = await library.call("check", network, published);
  expect([differs.error?.isCniError, differs.changed]).toEqual([true, []]);
  await library.must("del", network, published);
  await library.must("del", network, published);
  expect(await leftSince(moment, machine)).toEqual([]);
  expect(await library.must("warnings")).toEqual([]);

  await library.must("plan", network, { ...c1, capabilities: { portmappings: [] } });
  const untaken =
    'capability argument "portmappings": no plugin of network net takes it; did you mean "portMappings"?';
  expect(await library.must("warnings")).toEqual([untaken]);
  await library.must("add", network, { ...c1, capabilities: { portmappings: [] } });
  expect(await library.must("warnings")).toEqual([untaken, untaken]);
  await machine.sh(`cat >${CONFIGURATIONS}/other.conflist`, {
    stdin: JSON.stringify({ ...conf, name: "other", plugins: [{ ...conf.plugins[0], bridge: "other0" }] }),
  });
  await library.must("plan", network);
  expect((await library.must("warnings")).slice(2)).toEqual([
    `network net: addresses 10.1.0.0/24 overlap with those of network other in ${CONFIGURATIONS}/other.conflist`,
  ]);
});

test("gc keeps what is valid, or what is alive, and answers what it deleted", async () => {
  await using machine = await machineWithNetwork();
  await using library = await Library.open(machine, { options });
  const containers = [];
  for (const name of ["c1", "c2", "c3"]) {
    containers.push(await machine.container(name));
    await library.must("add", conf, attachmentOf(name));
  }
  await machine.removeContainer(containers[0]!);
  await untilGone(machine);
  expect(await library.must("gc", "net", { live: true })).toEqual([{ containerId: "c1", ifName: "eth0" }]);
  const valid = [{ containerId: "c3", ifName: "eth0" }];
  expect(await library.must("gc", "net", { valid })).toEqual([{ containerId: "c2", ifName: "eth0" }]);
  await library.must("check", "net", attachmentOf("c3"));
  expect(await library.must("gc", "net", { valid: [] })).toEqual([{ containerId: "c3", ifName: "eth0" }]);
});

test("del and gc know a network that is not configured any more", async () => {
  await using machine = await machineWithNetwork();
  const c1 = attachmentOf("c1"), container = await machine.container("c1");
  await using library = await Library.open(machine, { options });
  await library.must("add", "net", c1);
  await library.must("del", "net", c1);
  const moment = await quietMoment(machine);
  await library.must("add", "net", c1);
  const file = `${CONFIGURATIONS}/net.conflist`;
  await machine.sh(`mv ${file} /run/kept`);
  // Without its namespace, and without saying where it was.
  await machine.sh("ip netns del c1; ip netns add c1");
  await library.must("del", "net", { containerId: "c1" });
  await library.must("gc", conf, { valid: [] });
  await machine.sh(`mv /run/kept ${file}`);
  expect(await leftSince(moment, machine)).toEqual([]);
  await library.must("add", "net", c1);
  await machine.sh(`mv ${file} /run/kept`);
  expect(await library.must("gc", "net", { valid: [] })).toEqual([{ containerId: "c1", ifName: "eth0" }]);
  const unknown = await library.call("del", "net", { containerId: "c1" });
  expect(unknown.error).toMatchObject({ code: 7, message: expect.stringContaining("no net configurations found") });
  await machine.sh(`mv /run/kept ${file}`);
  expect(await leftSince(moment, machine)).toEqual([]);
  expect(container.name).toBe("c1");
});

test("what cannot be meant is refused by key and value, before anything is done", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options });
  const moment = await quietMoment(machine), c1 = attachmentOf("c1");
  const wrong: [call: unknown[], key: string, message: string][] = [
    [["add", "net", undefined], "attachment", "null must be an object"],
    [["add", "net", { ...c1, containerID: "c1" }], "attachment.containerID", "did you mean containerId?"],
    [["add", "net", { netns: "/run/netns/c1" }], "attachment.containerId", "must be a string that is not empty"],
    [["add", "net", { ...c1, containerId: 7 }], "attachment.containerId", "7 must be a string"],
    [["add", "net", { containerId: "c1" }], "attachment.netns", "undefined must be a string"],
    [["add", "net", { ...c1, netns: "c1" }], "attachment.netns", '"c1" is not a path; ip-netns(8) keeps'],
    [["add", "net", { ...c1, ifName: "" }], "attachment.ifName", '"" must be a string'],
    [["add", "net", { ...c1, args: { A: "b;C=d" } }], "attachment.args.A", '"b;C=d" must not contain'],
    [["add", "net", { ...c1, args: ["A=b"] }], "attachment.args", '["A=b"] must be an object'],
    [["add", "net", { ...c1, capabilities: 3 }], "attachment.capabilities", "3 must be an object"],
    [["add", 5, c1], "network", "5 must be a name, a configuration"],
    [["add", "", c1], "network", '"" must be a string'],
    [["gc", "net", {}], "kept", "{} must have one of valid and live"],
    [["gc", "net", { valid: "c1" }], "kept.valid", '"c1" must be a list'],
    [["gc", "net", { valid: [{ containerId: "c1" }] }], "kept.valid[0].ifName", "undefined must be a string"],
    [["gc", "net", { live: false }], "kept.live", "false must be true"],
    [["inspect", { container: "c1" }], "wanted.container", "did you mean containerId?"],
  ];
  for (const [[name, ...given], key, message] of wrong) {
    const { error, changed } = await library.call(name as string, ...given);
    expect([error?.isArgumentError, error?.isCniError, error?.key, changed]).toEqual([true, true, key, []]);
    expect(error?.message).toContain(message);
    expect(error?.message).toStartWith(`${key}: `);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
  await expect(Library.open(machine, { options: { configDir: "/etc" } })).rejects.toThrow(
    "there are configDirectory,",
  );
  await expect(Library.open(machine, { options: { cacheDirectory: "cache" } })).rejects.toThrow(
    "must be an absolute path",
  );
});

test("a configuration directory that is named and missing is an error; an empty one has no networks", async () => {
  await using machine = await machineWithNetwork();
  await using library = await Library.open(machine, { options: { configDirectory: "/run/nowhere" } });
  const { error } = await library.call("networks");
  expect(error).toMatchObject({ isCniError: true, code: 7, message: "no networks in /run/nowhere" });
  expect(error!.details).toBe("it does not exist");
  await machine.sh("mkdir /run/nowhere");
  expect(await library.must("networks")).toEqual([]);
});

test("what cannot be read is a CniError, too", async () => {
  await using machine = await machineWithNetwork();
  await using library = await Library.open(machine, { options: { configDirectory: "/etc/passwd" } });
  for (const [name, ...given] of [["networks"], ["network", "net"], ["add", "net", attachmentOf("c1")]] as const) {
    const { error } = await library.call(name, ...given);
    expect([name, error?.isCniError, error?.message]).toEqual([name, true, expect.stringContaining("/etc/passwd")]);
  }
});
