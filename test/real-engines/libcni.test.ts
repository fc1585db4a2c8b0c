/**
 * Debian's libcni by itself, as engines without go-cni use it: validation, its cache of results, and the same attachments
 * by Patchbay's own runtime, in turn.
 */
import { expect, test } from "bun:test";
import { type GoCall, GoEngine } from "../support/engines/go-engine.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd01::/64" }]] };
const conflist = {
  cniVersion: "1.0.0",
  name: "net",
  plugins: [
    { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true, ipam },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "firewall" },
    { type: "tuning", sysctl: { "net.core.somaxconn": "500" } },
  ],
};
const ports = (hostPort: number) => [{ hostPort, containerPort: 80, protocol: "tcp", hostIP: "" }];

class Stage implements AsyncDisposable {
  moment!: Moment;

  private constructor(readonly machine: Machine, readonly libcni: GoEngine) {}

  static async open(change: object = {}): Promise<Stage> {
    const machine = await openMachine(), network = { ...conflist, ...change };
    await machine.sh("mkdir /run/networks; cat >/run/networks/net.conflist", { stdin: JSON.stringify(network) });
    const settings = { library: "libcni", plugins: [patchbayPlugins()], networks: [network] } as const;
    return new Stage(machine, new GoEngine(machine, settings));
  }

  /** After one attachment, because bridges and base chains stay. */
  async settle(container: Container): Promise<void> {
    expect(await this.call("add", container)).toEqual({ result: expect.anything() });
    expect(await this.call("del", container)).toEqual({});
    this.moment = await quietMoment(this.machine);
  }

  call(call: string, { name, netnsPath }: Container, change: Partial<GoCall> = {}) {
    const labels = { IgnoreUnknown: "1", OWNER: name };
    const capabilities = { portMappings: ports(8080) };
    return this.libcni.one({ call, id: `id-${name}`, netns: netnsPath, labels, capabilities, ...change });
  }

  runtime(verb: string, { name, netnsPath }: Container) {
    return this.machine.run([PATCHBAY, verb, "net", netnsPath, "--container-id", `id-${name}`], {
      env: { NETCONFPATH: "/run/networks", CAP_ARGS: JSON.stringify({ portMappings: ports(8080) }) },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.libcni[Symbol.asyncDispose]();
    await this.machine[Symbol.asyncDispose]();
  }
}

test("a network is valid, and a version that a plugin has not is told", async () => {
  await using stage = await Stage.open();
  const nothing = { name: "", netnsPath: "" };
  expect(await stage.call("validate", nothing)).toEqual({ result: ["portMappings"] });
  await using other = await Stage.open({ cniVersion: "1.7.0" });
  expect((await other.call("validate", nothing)).error).toContain('"1.7.0"');
});

test("ADD, CHECK, DEL, and DEL again; the cached result is what ADD returned, and goes with DEL", async () => {
  await using stage = await Stage.open();
  const { machine } = stage, container = await machine.container("c1");
  await stage.settle(container);
  const added = await stage.call("add", container);
  expect(added.result.ips.map(({ address }: { address: string }) => address)).toEqual([
    expect.stringMatching(/^10\.1\.0\.\d+\/24$/),
    expect.stringMatching(/^fd01::/),
  ]);
  expect(await stage.call("cached result", container)).toEqual(added);
  const { result } = await stage.call("cached config", container);
  expect(result.runtime).toMatchObject({ ContainerID: "id-c1", IfName: "eth0", NetNS: container.netnsPath });
  expect(result.config).toEqual(conflist);
  expect(await stage.call("check", container)).toEqual({});
  await machine.sh("ip link set eth0 down", { in: container });
  await machine.sh("ip addr flush dev eth0", { in: container });
  expect((await stage.call("check", container)).error).toContain(added.result.ips[0].address.replace(/\/.*/, ""));
  for (let count = 0; count < 2; count++) expect(await stage.call("del", container)).toEqual({});
  expect((await stage.call("cached result", container)).result ?? null).toBeNull();
  expect(await leftSince(stage.moment, machine)).toEqual([]);
});

test("libcni does not call DEL after an ADD that failed; what was made goes when the engine calls it", async () => {
  await using stage = await Stage.open();
  const { machine } = stage, container = await machine.container("c1");
  await stage.settle(container);
  const refused = { capabilities: { portMappings: ports(70_000) } };
  expect((await stage.call("add", container, refused)).error).toContain("70000");
  expect(await machine.sh("ls /var/lib/cni/networks/net")).toContain("10.1.0.");
  expect(await stage.call("del", container, refused)).toEqual({});
  expect(await leftSince(stage.moment, machine)).toEqual([]);
});

test("what libcni has added, our runtime checks and deletes, and the other way round", async () => {
  await using stage = await Stage.open();
  const { machine } = stage, [mine, theirs] = [await machine.container("c1"), await machine.container("c2")];
  await stage.settle(mine);
  expect(await stage.call("add", theirs)).toEqual({ result: expect.anything() });
  for (const verb of ["check", "del"]) {
    expect(await stage.runtime(verb, theirs)).toMatchObject({ code: 0, stderr: "" });
  }
  expect((await stage.call("cached result", theirs)).result ?? null).toBeNull();

  const { code, stdout } = await stage.runtime("add", mine);
  expect(code).toBe(0);
  // libcni before 1.2 adds an empty "dns".
  const { result } = await stage.call("cached result", mine);
  expect({ dns: {}, ...result }).toEqual({ ...JSON.parse(stdout), dns: {} });
  expect(await stage.call("check", mine)).toEqual({});
  expect(await stage.call("del", mine)).toEqual({});
  // The runtime's lock stays.
  expect(await leftSince(stage.moment, machine, /\.patchbay\.lock$/)).toEqual([]);
});
