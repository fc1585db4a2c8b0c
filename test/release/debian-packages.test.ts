/**
 * Debian's packages in the place of Go's plugins, while engines' containers run: no call fails, no container loses its
 * network, and nothing stays when they are purged.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { cp } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { makeLinksPackage, makeProgramPackage } from "../../release/debian-packages.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { root } from "../support/documents.ts";
import { EngineMachine, PAGE, PLUGINS } from "../support/engines/engine-machine.ts";
import { Kubelet } from "../support/engines/kubelet.ts";
import { Podman } from "../support/engines/podman.ts";
import { PERMISSION_TEXT } from "../../src/process/resident-by-call.ts";
import { inOwnSystem } from "../support/own-system.ts";
import { keepCalling } from "../support/keep-calling.ts";
import { lacks } from "../support/kernel-features.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { changedFiles, ownPackages } from "../support/own-packages.ts";
import { makePackageVersions, type PackageVersions } from "../support/package-versions.ts";
import { statusOf } from "../support/resident-status.ts";
import { settled } from "../support/snapshot.ts";
import { Systemd } from "../support/systemd.ts";
import { untilTrue } from "../support/until-true.ts";

// The packages' own resident is what some of these tests are about.
delete process.env.PATCHBAY_TEST_RESIDENT;

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");
let packages: PackageVersions;
beforeAll(() => {
  packages = makePackageVersions({
    architecture: "amd64",
    makeProgram: makeProgramPackage,
    makeLinks: makeLinksPackage,
  });
}, 600_000);
afterAll(() => packages[Symbol.dispose]());

/** A machine may have a /tmp of its own. Returns where they are in it. */
async function copyInto(machine: Machine, files: string[]): Promise<string[]> {
  const there = files.map((file) => `/run/${basename(file)}`);
  for (const [index, file] of files.entries()) await cp(file, `/proc/${machine.pid}/root${there[index]}`);
  return there;
}

async function install(machine: Machine, ...files: string[]): Promise<void> {
  const there = await copyInto(machine, files);
  await machine.sh(`dpkg --install ${there.join(" ")} 2>&1; rm ${there.join(" ")}`);
}

async function states(machine: Machine): Promise<Record<string, string>> {
  const lines = await machine.sh(
    "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' '*patchbay*' '*networking-pl*' | grep -v ^un || true",
  );
  return Object.fromEntries(lines.trim().split("\n").filter(Boolean).map((line) => line.split(/ +/).toReversed()));
}

test("lintian finds nothing", () => {
  // It leaves files in the directory for temporary ones. This one goes with the packages.
  const env = { ...process.env, TMPDIR: dirname(dirname(packages.newer[0])) };
  const said = Bun.spawnSync(["lintian", "--allow-root", "--fail-on=error,warning", ...packages.newer], { env });
  expect([said.stdout.toString(), said.exitCode]).toEqual(["", 0]);
});

test("editors find the schema where docs/editors.md has it", async () => {
  const [, path] = /"url": "file:\/\/([^"]+)"/.exec(await Bun.file(`${root}/docs/editors.md`).text())!;
  const contents = Bun.spawnSync(["dpkg-deb", "--contents", packages.newer[0]]).stdout.toString();
  expect(contents).toContain(` .${path}\n`);
});

test("the manifests of a cluster are where docs/cluster.md has them", async () => {
  const [, folder] = /`\/(usr\/share\/[\w/]*kubernetes)`/.exec(await Bun.file(`${root}/docs/cluster.md`).text())!;
  const contents = Bun.spawnSync(["dpkg-deb", "--contents", packages.newer[0]]).stdout.toString();
  for (const name of readdirSync(`${root}/release/kubernetes`)) expect(contents).toContain(` ./${folder}/${name}\n`);
});

describe("in the place of Go's plugins", () => {
  interface Engine {
    serve(port: number): Promise<unknown>;
    remove(port: number): Promise<unknown>;
    left(): Promise<string[]>;
  }

  async function podmanIn(room: EngineMachine): Promise<Engine> {
    const podman = await Podman.open(room), name = (port: number) => `web-${port}`;
    return {
      serve: (port) => podman.serve(name(port), port),
      remove: (port) => podman.remove(name(port)),
      left: () => podman.left(),
    };
  }

  async function kubeletIn(room: EngineMachine): Promise<Engine> {
    const kubelet = await Kubelet.open(room), ids = new Map<number, string>();
    return {
      serve: async (port) =>
        ids.set(port, (await kubelet.run(`web-${port}`, [{ hostPort: port, containerPort: 80 }])).id),
      remove: (port) => kubelet.remove(ids.get(port)!),
      left: () => kubelet.left(),
    };
  }

  for (const [name, open] of Object.entries({ podman: podmanIn, "containerd for kubelets": kubeletIn })) {
    test.skipIf(cannotRun)(`${name}: installed, upgraded, downgraded and purged under calls`, async () => {
      await using room = await EngineMachine.open();
      const { machine } = room;
      await ownPackages(machine);
      // The engines of this test look for plugins where Debian's packages have them.
      await machine.sh(`rm -r ${PLUGINS}; ln -s /usr/lib/cni ${PLUGINS}`);
      const engine = await open(room), before = await changedFiles(machine);
      await engine.serve(8000);

      let next = 8100;
      const calling = keepCalling(async () => {
        const port = next++;
        await engine.serve(port);
        expect(await room.page(`127.0.0.1:${port}`)).toBe(PAGE);
        await engine.remove(port);
      });
      const asking = keepCalling(async () => expect(await room.page("127.0.0.1:8000")).toBe(PAGE));
      const [older, olderLinks] = packages.older, [newer, newerLinks] = packages.newer;
      const steps = [[older, olderLinks], [newer, newerLinks], [older, olderLinks], [newer, newerLinks]];
      for (const [index, files] of steps.entries()) {
        await install(machine, ...files);
        expect(await states(machine)).toEqual({
          patchbay: "ii",
          "patchbay-cni": "ii",
          "containernetworking-plugins": "ic",
        });
        const wanted = next + 2;
        await untilTrue(() => next, (port) => port >= wanted);
        if (index === 0) await engine.serve(8001);
      }
      await calling.stop();
      await asking.stop();

      const refused = await machine.run(["dpkg", "--remove", "patchbay-cni", "patchbay"]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain("set PATCHBAY_REMOVE=replaced in the environment");
      expect(await room.page("127.0.0.1:8001")).toBe(PAGE);
      for (const port of [8000, 8001]) await engine.remove(port);
      expect(await settled(() => engine.left())).toEqual([]);
      await machine.sh("patchbay gc --gone net; dpkg --purge patchbay-cni patchbay containernetworking-plugins 2>&1");
      expect(await states(machine)).toEqual({});
      expect(await changedFiles(machine)).toEqual(before);
      expect(await machine.sh("ls -d /run/patchbay 2>/dev/null || true")).toBe("");
    });
  }
});

test(
  "with systemd: calls are served, a new package's resident takes over, and a purge leaves neither unit nor process",
  async () => {
    await using machine = await openMachine();
    await ownPackages(machine);
    const units = "/lib/systemd/system";
    // The units of this host's own packages are nothing for a machine.
    await machine.sh(`mount -t tmpfs tmpfs ${units}`);
    await using systemd = await Systemd.start(machine, [units]);
    const { inside } = systemd;
    const before = await changedFiles(inside);
    await install(inside, ...packages.older.slice(0, 2));
    expect(await systemd.property("patchbay.socket", "ActiveState")).toBe("active");
    expect(await inside.sh("systemctl is-enabled patchbay-dhcp.socket || true")).toBe("disabled\n");
    expect(await inside.sh("systemctl show --property=Id cni-dhcp.socket")).toBe("Id=patchbay-dhcp.socket\n");

    const program = "/usr/bin/patchbay";
    const untilServed = () => untilTrue(() => statusOf(inside, program), ({ problem }) => problem === undefined);
    const { pid } = await untilServed();
    const calling = keepCalling(async () => {
      const { code, stderr } = await inside.run([program, "version"]);
      expect([code, stderr]).toEqual([0, ""]);
    });
    await install(inside, ...packages.newer.slice(0, 2));
    const { served } = await untilServed();
    expect(await calling.stop()).toBeGreaterThan(0);
    // Where the machine is busy, a call runs by itself.
    const { pid: later } = await untilTrue(async () => {
      await inside.sh(`${program} version`);
      return await statusOf(inside, program);
    }, (now) => now.served > served);
    expect(later).toBe(pid);

    await inside.sh("dpkg --purge patchbay-cni patchbay containernetworking-plugins 2>&1");
    expect(await changedFiles(inside)).toEqual(before);
    expect(
      await inside.sh(
        `pgrep -x patchbay || true; find /run/patchbay ${units} -name "*patchbay*" 2>/dev/null || true`,
      ),
    ).toBe("");
  },
  300_000,
);

test("without systemd: calls start a resident, unless somebody has chosen otherwise", async () => {
  await using machine = await openMachine();
  await ownPackages(machine);
  await machine.sh("rm /usr/lib/systemd/systemd");
  const before = await changedFiles(machine);
  const older = await copyInto(machine, packages.older.slice(0, 2));
  const newer = await copyInto(machine, packages.newer.slice(0, 2));
  const said = await inOwnSystem(
    machine,
    `
      permission() { cat /usr/lib/patchbay/.patchbay-resident 2>/dev/null || echo none; }
      packaged_one() { CNI_COMMAND=DEL CNI_CONTAINERID=x CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni /usr/lib/cni/bridge </run/conf; one; }
      dpkg() { /usr/bin/dpkg "$@" >/run/said 2>&1 || { cat /run/said; exit 1; }; }
      dpkg --install ${older.join(" ")}; permission; until_true packaged_one
      dpkg --install ${newer.join(" ")}; permission; until_true packaged_one
      dpkg --remove patchbay-cni patchbay; permission; until_true none
      dpkg --install ${older.join(" ")}; permission
      rm /usr/lib/patchbay/.patchbay-resident
      dpkg --install ${newer.join(" ")}; permission
      dpkg --purge patchbay-cni patchbay containernetworking-plugins; permission
      /run/cni/patchbay install --uninstall /run/cni >/dev/null
    `,
    "--no-resident",
  );
  const permitted = `${PERMISSION_TEXT}\n`;
  expect(said).toBe(`${permitted}${permitted}none\n${permitted}none\nnone\n`);
  expect(await changedFiles(machine)).toEqual(before);
});

test("beside Kubernetes: kubelet finds its dependency, and plugins are in /opt/cni/bin", async () => {
  await using machine = await openMachine();
  await ownPackages(machine);
  await machine.sh(`
    mkdir -p /run/kubelet/DEBIAN
    printf 'Package: kubelet\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\nDepends: kubernetes-cni (>= 1.2.0)\\n' >/run/kubelet/DEBIAN/control
    dpkg-deb --build /run/kubelet /run/kubelet.deb
  `);
  const [program, , opt] = packages.newer;
  await install(machine, program, opt);
  await machine.sh("dpkg --install /run/kubelet.deb");
  expect(await machine.sh("CNI_COMMAND=VERSION /opt/cni/bin/bridge </dev/null")).toContain('"1.1.0"');
  expect(await machine.sh("/usr/lib/patchbay/netavark --version")).toStartWith("netavark 2.");
  expect(await machine.sh("readlink -f /opt/cni/bin/*")).toBe(
    "/usr/lib/patchbay/patchbay\n".repeat(pluginNames.length),
  );
});

test("a program that does not run does not keep its packages from being removed", async () => {
  await using machine = await openMachine();
  await ownPackages(machine);
  const [program, , opt] = packages.newer;
  await install(machine, program, opt);
  await machine.sh("truncate -s 3000000 /usr/lib/patchbay/patchbay");
  const said = await machine.sh("dpkg --purge patchbay-opt-cni patchbay 2>&1");
  expect(said).toMatch(/ \(exit status \d+\)\npatchbay-opt-cni: could not ask what is attached, and goes on\n/);
  expect((await states(machine)).patchbay).toBeUndefined();
});

test("both packages of links may be installed at once; the program is there once", () => {
  const listed = packages.newer.map((file) => Bun.spawnSync(["dpkg-deb", "--contents", file]).stdout.toString());
  const files = listed.map((text) =>
    text.split("\n").filter((line) => line.startsWith("-")).map((line) => line.split(/ +\./)[1])
  );
  expect(files.flat().filter((path) => path!.endsWith("/patchbay") && !path!.includes("/share/"))).toEqual([
    "/usr/lib/patchbay/patchbay",
  ]);
  const links = listed.flatMap((text) => text.split("\n").filter((line) => line.startsWith("l")));
  expect(new Set(links.map((line) => line.split(/ +\./)[1])).size).toBe(links.length);
  expect(readdirSync(dirname(packages.newer[0]))).toHaveLength(3);
});
