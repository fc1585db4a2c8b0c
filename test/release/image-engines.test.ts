/** What the container image does to a node, with podman in kubelet's place: it installs, uninstalls, waits and serves. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { compileNative } from "../../compile/native.ts";
import { imageContents, makeImage, NAME } from "../../release/image/image.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { Containerd } from "../support/engines/containerd.ts";
import { EngineMachine, PLUGINS, PROGRAM } from "../support/engines/engine-machine.ts";
import { Podman } from "../support/engines/podman.ts";
import { lacks } from "../support/kernel-features.ts";
import { podmanOptions } from "../support/manifests.ts";
import { writeOtherBuild } from "../support/other-build.ts";
import { cni, PATCHBAY } from "../support/plugins.ts";
import { openStage, type Stage } from "../support/reborn.ts";
import { settled } from "../support/snapshot.ts";
import { untilTrue } from "../support/until-true.ts";

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");
const VERSION = "1.2.3", IMAGE = `${NAME}:${VERSION}`;
const ATTACHED = { cniVersion: "1.0.0", name: "net", type: "bridge", bridge: "node0" };
/** What a node has for plugins. */
const NODE = "/opt/node/bin";
const CONFINED = podmanOptions("daemonset.yaml", "install");
const on = (mount: string) => ["run", ...CONFINED, `--volume=${mount}`];
const INSTALL = [...on(`${NODE}:/host/opt/cni/bin`), "--rm", IMAGE];

let room: EngineMachine, podman: Podman, builds: string, archive: string;
beforeAll(async () => {
  builds = mkdtempSync(`${tmpdir()}/image-`);
  writeOtherBuild(`${builds}/patchbay`, 1);
  archive = makeImage({
    // What is for other processors does not run here.
    contents: imageContents((architecture) => architecture === "x64" ? PATCHBAY : import.meta.path),
    compile: (name) => compileNative(name, "x64"),
    version: VERSION,
    epoch: 1_700_000_000,
    out: builds,
  });
  room = await EngineMachine.open();
  podman = await Podman.open(room);
  await podman.call("load", "-q", "-i", archive);
}, 300_000);
afterAll(async () => {
  await room?.[Symbol.asyncDispose]();
  rmSync(builds, { recursive: true });
});

const attempt = (...words: string[]) => room.run(["podman", ...words]);
const sh = (script: string) => room.machine.sh(script);
const prepare = (script: string) => sh(`rm -rf ${NODE}; mkdir -p ${NODE}; cd ${NODE}; ${script}`);
const listed = async () =>
  (await sh(`cd ${NODE}; find . -mindepth 1 ! -name '.patchbay-resident' ! -path './.patchbay-backup*' | sort`))
    .trim();
const COMPLETE = ["patchbay", ...pluginNames].map((name) => `./${name}`).sort().join("\n");
const sees = (name: string) => sh(`${NODE}/${name} 2>&1 </dev/null`);

test.skipIf(cannotRun)(
  "installs what a node needs, with nothing but a directory, and the second time changes nothing",
  async () => {
    await prepare("printf '#!/bin/sh\\necho go' >loopback; chmod 755 loopback");
    expect(await attempt(...INSTALL)).toMatchObject({ code: 0, stderr: "" });
    expect(await listed()).toBe(COMPLETE);
    expect(await sees("bridge")).toStartWith("CNI bridge plugin v");
    // The engine's calls leave a resident behind.
    await sh(`test -f ${NODE}/.patchbay-resident`);
    expect(await sees(".patchbay-backup/loopback")).toBe("go\n");
    await sh(`cmp ${NODE}/patchbay ${PROGRAM}`);
    const before = await sh(`stat -c '%n %i %Z' ${NODE}/*`);
    expect(await attempt(...INSTALL)).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(await sh(`stat -c '%n %i %Z' ${NODE}/*`)).toBe(before);
  },
);

test.skipIf(cannotRun)(
  "a read-only directory with the same build is success, with another build a clear error",
  async () => {
    const readOnly = [...on(`${NODE}:/host/opt/cni/bin:ro`), "--rm", IMAGE];
    await prepare(`${PATCHBAY} install --no-resident ${NODE}`);
    expect(await attempt(...readOnly)).toEqual({ code: 0, stdout: "", stderr: "" });
    await prepare(`${builds}/patchbay install --no-resident ${NODE}`);
    const { code, stderr } = await attempt(...readOnly);
    expect(code).toBe(1);
    expect(stderr).toContain("/host/opt/cni/bin does not have all of patchbay");
    await sh(`cmp ${NODE}/patchbay ${builds}/patchbay`);
  },
);

test.skipIf(cannotRun)("a directory of another user, as archives of plugins make it", async () => {
  await prepare(`chown 1001:1001 ${NODE}`);
  expect(await attempt(...INSTALL)).toMatchObject({ code: 0, stderr: "" });
  expect(await listed()).toBe(COMPLETE);
});

test.skipIf(cannotRun)("another directory, by the argument", async () => {
  await prepare("");
  const words = [...on(`${NODE}:/elsewhere`), "--rm", IMAGE, "install", "/elsewhere"];
  expect(await attempt(...words)).toMatchObject({ code: 0, stderr: "" });
  expect(await listed()).toBe(COMPLETE);
});

test.skipIf(cannotRun)("two at once both succeed", async () => {
  await prepare(`${builds}/patchbay install --no-resident ${NODE}`);
  for (const { code } of await Promise.all([attempt(...INSTALL), attempt(...INSTALL)])) expect(code).toBe(0);
  expect(await listed()).toBe(COMPLETE);
  await sh(`cmp ${NODE}/patchbay ${PROGRAM}`);
});

test.skipIf(cannotRun)(
  "killed while it copies: the node's plugins work, and the next one leaves nothing over",
  async () => {
    await prepare(`${builds}/patchbay install --no-resident ${NODE}`);
    const isCopying = async () => (await room.machine.run(["test", "-e", `${NODE}/patchbay.1.tmp`])).code === 0;
    let seen = false;
    for (let round = 0; round < 20 && !seen; round++) {
      await sh(`cp --remove-destination ${builds}/patchbay ${NODE}/patchbay`);
      const running = attempt(...INSTALL);
      let ended = false;
      void running.then(() => ended = true);
      await untilTrue(async () => ended || await isCopying(), Boolean);
      room.endNow("patchbay");
      await running;
      seen = await isCopying();
      expect(await sees("bridge")).toStartWith("CNI bridge plugin v");
    }
    expect(seen).toBe(true);
    expect(await attempt(...INSTALL)).toMatchObject({ code: 0, stderr: "" });
    expect(await listed()).toBe(COMPLETE);
  },
);

test.skipIf(cannotRun)(
  "--uninstall puts back what was there, unless something is attached that would stay",
  async () => {
    const words = [...on(`${NODE}:/host/opt/cni/bin`), "--volume=/run/patchbay:/run/patchbay:ro", "--rm", IMAGE];
    const uninstall = () => attempt(...words, "install", "--uninstall", "/host/opt/cni/bin");
    // As kubelet makes it, where there is none.
    await sh("mkdir -p -m 755 /run/patchbay");
    await prepare("printf '#!/bin/sh\\necho go' >loopback; chmod 755 loopback");
    expect(await attempt(...INSTALL)).toMatchObject({ code: 0 });
    const container = await room.machine.container(), call = { plugin: "bridge", conf: ATTACHED, container };
    expect(await cni(room.machine, NODE, { ...call, command: "ADD" })).toMatchObject({ code: 0 });
    expect(await uninstall()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nothing was changed: 1 of 1 recorded attachment has"),
    });
    expect(await listed()).toBe(COMPLETE);
    expect(await cni(room.machine, NODE, { ...call, command: "DEL" })).toMatchObject({ code: 0 });
    await room.machine.removeContainer(container);
    expect(await uninstall()).toMatchObject({ code: 0 });
    expect(await listed()).toBe("./loopback");
    expect(await sees("loopback")).toBe("go\n");
  },
);

test.skipIf(cannotRun)("pause waits as process 1 until SIGTERM, and ends with status 0", async () => {
  const id = await podman.call(
    "run",
    "-d",
    ...podmanOptions("daemonset.yaml", "pause"),
    "--entrypoint=/usr/bin/pause",
    IMAGE,
  );
  const process = await podman.call("inspect", "-f", "{{.State.Pid}}", id);
  expect(await sh(`cat /proc/${process}/status`)).toMatch(/^NSpid:.*\t1$/m);
  await podman.call("kill", "-s", "CONT", id);
  await podman.call("kill", "-s", "TERM", id);
  expect(await podman.call("wait", id)).toBe("0");
  await podman.call("rm", id);
});

test.skipIf(cannotRun)("serve, as process 1, ends its calls and itself at SIGTERM, with status 0", async () => {
  const id = await podman.call("run", "-d", "--network=none", "--privileged", IMAGE, "serve", "--rehearsals=0");
  await untilTrue(() => attempt("logs", id), ({ stderr }) => stderr.includes("the resident serves calls"));
  await podman.call("kill", "-s", "TERM", id);
  expect(await podman.call("wait", id)).toBe("0");
  await podman.call("rm", id);
});

describe.skipIf(cannotRun)("serve --host", () => {
  /** A process namespace whose process 1 is in the machine: the host that a container sees. */
  let host: Stage;
  beforeAll(async () => {
    if (!cannotRun) host = await openStage(room.machine);
  });
  afterAll(async () => await host?.[Symbol.asyncDispose]());

  const PRIVILEGED = [
    "podman",
    "run",
    "--rm",
    "--cgroups=enabled",
    "--pids-limit=0",
    ...podmanOptions("resident.yaml", "resident"),
  ];
  const SERVE = [IMAGE, "serve", "--workers=1", "--rehearsals=0"];
  const status = async () => JSON.parse((await host.run([PROGRAM, "serve", "--status", "--json"])).stdout);

  test("serves the host's calls as the host's program, until SIGTERM", async () => {
    const serving = host.start([...PRIVILEGED, ...SERVE, `--host=${PLUGINS}`]);
    const { pid } = await untilTrue(status, ({ problem }) => problem === undefined);
    expect((await host.run(["readlink", `/proc/${pid}/exe`])).stdout.trim()).toBe(PROGRAM);
    const call = [PROGRAM, "version"];
    const { served } = await status();
    // Where the machine is busy, a call runs by itself.
    await untilTrue(async () => {
      expect((await host.run(call)).stdout).toStartWith("patchbay ");
      return (await status()).served;
    }, (now) => now > served);
    expect(await host.run(["kill", "-TERM", String(pid)])).toMatchObject({ code: 0 });
    expect(await serving.exited).toBe(0);
    expect((await host.run(call)).stdout).toStartWith("patchbay ");
    expect(await sh("ls /run/patchbay")).not.toContain("serve.sock");
  });

  test.each<[what: string, words: readonly string[], says: string]>([
    ["without the host's processes", [
      ...PRIVILEGED.filter((word) => word !== "--pid=host"),
      ...SERVE,
      `--host=${PLUGINS}`,
    ], "hostPID: true"],
    [
      "where nothing is installed",
      [...PRIVILEGED, ...SERVE, "--host=/opt/none"],
      "patchbay install /opt/none",
    ],
    [
      "without privileges",
      ["setpriv", "--bounding-set=-sys_admin", PATCHBAY, "serve", `--host=${PLUGINS}`],
      "CAP_SYS_ADMIN",
    ],
  ])("%s it says what is missing", async (_, words, says) => {
    const { code, stderr } = await host.run(words);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) });
    expect(stderr).toStartWith("patchbay serve: ");
  });
});

test.skipIf(cannotRun)("nothing of it runs any more", async () => {
  expect(await settled(() => podman.left())).toEqual([]);
});

test.skipIf(cannotRun)("containerd imports it by the name that the manifests have", async () => {
  await using other = await EngineMachine.open();
  const containerd = await Containerd.open(other);
  await containerd.call("images", "import", archive);
  expect(await containerd.call("images", "ls", "-q")).toBe(IMAGE);
  expect(await containerd.call("images", "check", "-q")).toBe(IMAGE);
});
