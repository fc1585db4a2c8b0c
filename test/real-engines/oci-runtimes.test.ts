/** Debian's runc and crun call `patchbay hook`: docs/engines/runc-crun.md, by itself and through a resident. */
import { describe, expect, test } from "bun:test";
import { EngineMachine, PROGRAM } from "../support/engines/engine-machine.ts";
import { type Config, OciRuntime, OWN_FILES } from "../support/engines/oci-runtime.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { startResident } from "../support/resident.ts";
import { untilServed } from "../support/resident-status.ts";
import { settled } from "../support/snapshot.ts";
import { ping } from "../support/traffic.ts";
import { random } from "../support/random.ts";
import { ownShare } from "../support/share.ts";

// Each test says itself whether there is a resident.
delete process.env.PATCHBAY_TEST_RESIDENT;

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");
const notOfContainers = new RegExp(`${OWN_FILES.source}|last_reserved_ip`);

interface Stage extends AsyncDisposable {
  runtime: OciRuntime;
  /** Bridges and base chains stay after the first container. */
  moment: Moment;
}

async function open(name: "runc" | "crun"): Promise<Stage> {
  const room = await EngineMachine.open(), runtime = new OciRuntime(room, name);
  try {
    expect(await runtime.asPrinted()).toBe("hello");
    const moment = await quietMoment(room.machine);
    return { runtime, moment, [Symbol.asyncDispose]: () => room[Symbol.asyncDispose]() };
  } catch (error) {
    await room[Symbol.asyncDispose]();
    throw error;
  }
}

async function expectNothingLeft({ runtime, moment }: Stage): Promise<void> {
  expect(await settled(() => runtime.left())).toEqual([]);
  expect(await leftSince(moment, runtime.room.machine, notOfContainers)).toEqual([]);
}

const port = (number: number) => (config: Config) => {
  config.annotations["dev.patchbay.ports"] = `${number}:80`;
  config.annotations["dev.patchbay.networks"] = "front, back";
};

/** A container in two networks is reached at both addresses and by the host's port, and goes in two ways. */
async function useContainers({ runtime }: Stage): Promise<void> {
  const { room } = runtime;
  await runtime.start("web");
  const addresses = await runtime.addressesOf("web");
  expect(addresses).toEqual(["lo 127.0.0.1", expect.stringMatching(/^eth0 10\.77\.0\.\d+$/), "eth1 10.78.0.80"]);
  for (const one of addresses.slice(1)) {
    const address = one.split(" ")[1]!;
    expect(await ping(room.machine, undefined, address)).toBe(true);
    expect(await room.page(address)).toBe("hello");
  }
  for (const host of ["127.0.0.1", "10.77.0.1"]) expect(await room.page(`${host}:8080`)).toBe("hello");
  await runtime.start("ended", port(8081));
  expect(await room.page("127.0.0.1:8081")).toBe("hello");
  await runtime.killed("ended");
  await runtime.succeed("runc delete ended");
  expect(await room.page("127.0.0.1:8080")).toBe("hello");
  await runtime.succeed("runc delete --force web");
}

describe.each(ownShare(["runc", "crun"] as const))("%s", (name) => {
  test.skipIf(cannotRun)("containers, with two networks and ports, killed and deleted", async () => {
    await using stage = await open(name);
    await useContainers(stage);
    await expectNothingLeft(stage);
  });

  test.skipIf(cannotRun)("through a resident, which declines nothing", async () => {
    await using stage = await open(name);
    const { machine } = stage.runtime.room;
    await using resident = await startResident(machine, undefined, PROGRAM);
    const before = await untilServed(machine, PROGRAM);
    await useContainers(stage);
    await expectNothingLeft(stage);
    const { served, declined } = await untilServed(machine, PROGRAM);
    // Two containers, each with both hooks.
    expect(served - before.served).toBeGreaterThanOrEqual(2 * 2);
    expect(declined).toEqual({});
    resident.kill("SIGTERM");
    expect(await resident.exited).toBe(0);
  });

  test.skipIf(cannotRun)("twenty at once", async () => {
    await using stage = await open(name);
    const { runtime } = stage, ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    await Promise.all(ids.map((id, index) => runtime.start(id, port(8100 + index))));
    const addresses = (await Promise.all(ids.map((id) => runtime.addressesOf(id)))).flat();
    expect(new Set(addresses.filter((one) => one.startsWith("eth"))).size).toBe(40);
    for (const index of [0, 19]) expect(await runtime.room.page(`127.0.0.1:${8100 + index}`)).toBe("hello");
    await Promise.all(ids.map((id) => runtime.succeed(`runc delete --force ${id}`)));
    await expectNothingLeft(stage);
  });

  test.skipIf(cannotRun)("a hook that fails makes create fail, and the cause is told", async () => {
    await using stage = await open(name);
    const { runtime } = stage, log = "/run/hooks.log";
    const wrong: [cause: string, change: (config: Config) => void][] = [
      ['no net configuration with name "bak" in /etc/cni/net.d; did you mean "back"?', ({ annotations }) => {
        annotations["dev.patchbay.networks"] = "front, bak";
      }],
      ["eth1 cannot be attached to network back: ", ({ annotations }) => {
        annotations["dev.patchbay.networks"] = "front, back ip=10.99.0.1";
      }],
      ["this hook runs in the container's own namespaces", ({ hooks }) => {
        hooks.createContainer = hooks.createRuntime!;
        delete hooks.createRuntime;
      }],
      ['linux.namespaces of config.json has none of type "network"', ({ linux }) => {
        linux.namespaces = linux.namespaces.filter(({ type }) => type !== "network");
      }],
    ];
    for (const [cause, change] of wrong) {
      await runtime.room.machine.sh(`rm -f ${log}`);
      const { code, stderr } = await runtime.create("wrong", (config) => {
        config.annotations["run.oci.hooks.stderr"] = log;
        change(config);
      });
      expect(code).not.toBe(0);
      // crun writes it where the annotation says, runc to its own stderr, quoted.
      const told = name === "crun" ? await runtime.room.machine.sh(`cat ${log}`) : stderr.replaceAll("\\", "");
      expect(told).toContain(cause);
      await expectNothingLeft(stage);
    }
  });

  test.skipIf(cannotRun)("a namespace that somebody else made, with its path in config.json", async () => {
    await using stage = await open(name);
    const { runtime } = stage, container = await runtime.room.machine.container("pinned");
    await runtime.start("web", ({ linux }) => {
      linux.namespaces.find(({ type }) => type === "network")!.path = "/run/netns/pinned";
    });
    expect(await runtime.addressesOf("web")).toContain("eth1 10.78.0.80");
    expect(await runtime.room.page("127.0.0.1:8080")).toBe("hello");
    expect(await runtime.room.machine.sh("cat /var/lib/cni/results/*")).toContain('"netns":"/run/netns/pinned"');
    await runtime.succeed("runc delete --force web");
    expect(await runtime.room.machine.sh("ip -br link", { in: container })).toMatch(/^lo .*\n$/);
    await runtime.room.machine.removeContainer(container);
    await expectNothingLeft(stage);
  });

  test.skipIf(cannotRun)("a container with a user namespace, and one that is never started", async () => {
    await using stage = await open(name);
    const { runtime } = stage;
    const ownUsers = (config: Config) => {
      port(8081)(config);
      config.linux.namespaces.push({ type: "user" });
      const mappings = [{ containerID: 0, hostID: 100_000, size: 65_536 }];
      Object.assign(config.linux, { uidMappings: mappings, gidMappings: mappings });
    };
    await runtime.start("users", ownUsers);
    expect(await runtime.room.page("127.0.0.1:8081")).toBe("hello");
    expect(await runtime.create("never")).toMatchObject({ code: 0 });
    expect(await runtime.addressesOf("never")).toContain("eth1 10.78.0.80");
    for (const id of ["users", "never"]) await runtime.succeed(`runc delete --force ${id}`);
    await expectNothingLeft(stage);
  });

  test.skipIf(cannotRun)(
    "runtime, hook and container killed at any moment: a hook del by hand leaves nothing",
    async () => {
      await using stage = await open(name);
      const { runtime } = stage;
      for (let round = 0; round < 12; round++) {
        const id = `killed-${round}`, starting = runtime.start(id).catch(() => undefined);
        await Bun.sleep(random() * 150);
        await runtime.killEverything();
        await starting;
        // On a busy machine the runtime may have begun after that.
        await runtime.killEverything();
        await runtime.room.machine.sh(`echo '{"id":"${id}"}' | ${PROGRAM} hook del`);
        await expectNothingLeft(stage);
      }
    },
  );

  test.skipIf(cannotRun)("after a reboot the container starts again", async () => {
    await using stage = await open(name);
    const { runtime } = stage, { machine } = runtime.room;
    await runtime.start("web");
    // What a boot ends: processes and namespaces, everything in /run, and what is in the kernel.
    await machine.sh(`
      kill -9 ${await runtime.pidOf("web")}
      rm -rf /run/${name} /run/patchbay
      ip link delete dev front0; ip link delete dev back0
      iptables-save | grep -q CNI; iptables -t nat -F; iptables -t nat -X; iptables -F; iptables -X; nft flush ruleset
      rmdir /sys/fs/cgroup/${runtime.room.group}/web 2>/dev/null || true`);
    await runtime.start("web");
    expect(await runtime.addressesOf("web")).toContain("eth1 10.78.0.80");
    expect(await runtime.room.page("127.0.0.1:8080")).toBe("hello");
    await runtime.succeed("runc delete --force web");
    expect(await settled(() => runtime.left())).toEqual([]);
    const moment = await quietMoment(machine);
    await runtime.start("web");
    await runtime.succeed("runc delete --force web");
    await expectNothingLeft({ ...stage, moment });
    expect(await machine.sh("ls /var/lib/cni/results; find /run/patchbay -type f ! -name 'serve~*'; ip -br link")).not
      .toContain("web");
  });
});
