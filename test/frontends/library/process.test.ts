/**
 * The process that uses the package is afterwards what it was before: its namespaces, umask, directory, descriptors, signals.
 * And what it began goes when it is killed.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { installedPackage, Library } from "../../support/library/installed.ts";
import {
  attachmentOf,
  bridge,
  conf,
  CONFIGURATIONS,
  machineWithNetwork,
  options,
} from "../../support/library/network.ts";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { startResident } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

// A resident serves none of these.
delete process.env.PATCHBAY_TEST_RESIDENT;

test("without root every function throws one error that says so, and does nothing", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const as = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
  await using library = await Library.open(machine, { options, as });
  const moment = await quietMoment(machine), c1 = attachmentOf("c1");
  const reason = "this needs root, or a user namespace of its own: uid 0 has not CAP_SYS_ADMIN";
  for (
    const [name, ...given] of [["add", "net", c1], ["del", "net", c1], ["status", "net"], ["networks"], ["inspect"]]
  ) {
    const { error, value, changed } = await library.call(name as string, ...given);
    expect([name, value, changed, error]).toEqual([
      name,
      undefined,
      [],
      expect.objectContaining({
        isCniError: true,
        message: reason,
      }),
    ]);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

const sysctl = { "net.ipv4.conf.all.arp_filter": "1" };

test("a failed call throws a CniError and leaves process and kernel as they were", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options });
  const c1 = attachmentOf("c1");
  await library.must("add", "net", c1);
  await library.must("del", "net", c1);
  const moment = await quietMoment(machine);
  const chainOf = (...plugins: unknown[]) => ({ ...conf, plugins: [bridge, ...plugins] });
  const failing: [call: unknown[], code: number, message: string][] = [
    [["add", "nett", c1], 7, 'no net configuration with name "nett"'],
    [["add", { ...conf, plugins: [] }, c1], 7, "no plugins in list"],
    [["add", { ...conf, cniVersion: "9.0.0" }, c1], 1, "9.0.0"],
    [["add", chainOf({ type: "nothing" }), c1], 999, '"nothing" is not part of patchbay'],
    [["add", chainOf({ type: "tuning", mtu: "x" }), c1], 7, "mtu"],
    [["add", chainOf({ type: "tuning", sysctl: { "net.core.nothing": "1" } }), c1], 7, "nothing"],
    [["add", "net", { ...c1, netns: "/run/netns/gone" }], 4, "/run/netns/gone"],
    [["add", "net", { ...c1, netns: "/proc/self/ns/net" }], 8, "should not be the same"],
    [["add", "net", { ...c1, netns: "/etc/passwd" }], 4, "/etc/passwd"],
    [["add", "net", { ...c1, containerId: "a/b" }], 4, "a/b"],
    [["add", "net", { ...c1, ifName: "a name with spaces" }], 4, "name"],
    [["check", "net", c1], 7, "prevResult"],
    [["status", { ...chainOf({ type: "nothing" }), cniVersion: "1.1.0" }], 999, "nothing"],
  ];
  for (const [[name, ...given], code, message] of failing) {
    const { error, changed } = await library.call(name as string, ...given);
    expect([name, error?.isCniError, error?.isArgumentError, message, error?.code])
      .toEqual([name, true, false, message, code]);
    expect(`${error?.message}; ${error?.details}`).toContain(message);
    expect(changed).toEqual([]);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("plugins of other makes leave the process as it was, and those of this make run in it", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options: { ...options, pluginPath: GO_PLUGINS } });
  const c1 = attachmentOf("c1");
  await library.must("add", "net", c1);
  await library.must("check", "net", c1);
  expect((await library.must("plan", "net"))[0].resources).toBeUndefined();
  await library.must("del", "net", c1);
  expect(await library.must("children")).toBe("");
  await using own = await Library.open(machine, { options: { ...options, pluginPath: patchbayPlugins() } });
  expect((await own.must("plan", "net"))[0].resources).toBeDefined();
});

test("plugins of other makes have the environment that the program has by then", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await machine.sh(`
    mkdir /run/plugins
    printf '#!/bin/sh\necho "$MARK" >/run/mark; echo '"'"'{"cniVersion":"1.0.0"}'"'" >/run/plugins/marking
    chmod +x /run/plugins/marking`);
  await using library = await Library.open(machine, { options: { pluginPath: "/run/plugins" } });
  await library.must("setVariable", "MARK", "set later");
  const network = { cniVersion: "1.0.0", name: "marked", plugins: [{ type: "marking" }] };
  expect(await library.must("add", network, attachmentOf("c1"))).toEqual({ cniVersion: "1.1.0" });
  expect(await machine.sh("cat /run/mark")).toBe("set later\n");
});

test("nothing that the library writes may be read by others, though the program's umask forbids nothing", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options, env: { PATCHBAY_STATE_DIR: "/run/own" }, umask: "0" });
  await library.must("add", "net", attachmentOf("c1"));
  expect(await machine.sh("ls /run/own/net")).toBe("c1@eth0@bridge\n");
  expect(await machine.sh("find /run/own /var/lib/cni \\( -type f -perm /077 -o -type d -perm /022 \\)")).toBe("");
  await library.must("del", "net", attachmentOf("c1"));
});

test("a hundred attachments in one process leave no descriptor and no child", async () => {
  await using machine = await machineWithNetwork({ ...conf, plugins: [bridge] });
  await machine.container("c1");
  await using library = await Library.open(machine, { options });
  await library.must("repeat", 10, "net", attachmentOf("c1"));
  const moment = await quietMoment(machine);
  await library.must("repeat", 100, "net", attachmentOf("c1"));
  expect(await leftSince(moment, machine)).toEqual([]);
  await untilTrue(() => library.must("children"), (children) => children === "");
});

test("a process killed in the middle of add leaves nothing that del by command does not remove", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  const c1 = attachmentOf("c1", { capabilities: { portMappings: [{ hostPort: 8080, containerPort: 80 }] } });
  {
    await using library = await Library.open(machine, { options });
    await library.must("add", "net", c1);
    await library.must("del", "net", c1);
  }
  const moment = await quietMoment(machine);
  for (let nth = 1; nth <= 25; nth += 3) {
    await using library = await Library.open(machine, { options });
    const { pid } = library.process;
    const inject = ["-e", `inject=sendto:signal=KILL:when=${nth}`];
    const tracer = machine.start(["strace", "-qq", "-o", "/dev/null", ...inject, "-p", String(pid)]);
    await machine.sh(`until grep -q "TracerPid:.*[1-9]" /proc/${pid}/status; do sleep 0.01; done`);
    await expect(library.call("add", "net", c1)).rejects.toThrow("the program ended");
    await library.process.exited;
    await tracer.exited;
    expect(library.process.signalCode).toBe("SIGKILL");
    const words = ["--config-dir", CONFIGURATIONS, "--container-id", "c1", "net", "/run/netns/c1"];
    expect(await machine.run([PATCHBAY, "del", ...words])).toMatchObject({ code: 0 });
    expect(await leftSince(moment, machine)).toEqual([]);
  }
});

test("two processes and the command line at once, on the same container and on others", async () => {
  await using machine = await machineWithNetwork();
  for (const name of ["c1", "c2", "shared"]) await machine.container(name);
  await using one = await Library.open(machine, { options });
  await using two = await Library.open(machine, { options });
  await one.must("add", "net", attachmentOf("c1"));
  await one.must("del", "net", attachmentOf("c1"));
  const moment = await quietMoment(machine);
  await Promise.all([
    one.must("repeat", 20, "net", attachmentOf("c1")),
    two.must("repeat", 20, "net", attachmentOf("c2")),
  ]);
  const del = ["del", "--config-dir", CONFIGURATIONS, "--container-id", "shared", "net", "/run/netns/shared"];
  for (let count = 0; count < 10; count++) {
    const added = await Promise.all([one, two].map((each) => each.call("add", "net", attachmentOf("shared"))));
    expect(added.filter(({ value }) => value !== undefined)).toHaveLength(1);
    const [first, second, command] = await Promise.all([
      one.call("del", "net", attachmentOf("shared")),
      two.call("del", "net", attachmentOf("shared")),
      machine.run([PATCHBAY, ...del]),
    ]);
    expect([first.error, second.error, command.code]).toEqual([undefined, undefined, 0]);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("in a thread of its own the program goes on meanwhile", async () => {
  await using machine = await machineWithNetwork();
  const container = await machine.container("c1"), c1 = attachmentOf("c1");
  await using library = await Library.open(machine, { options: { ...options, isThreaded: true } });
  const { value: { ips } } = await library.call("add", "net", c1);
  expect(await machine.sh("ip -o -4 addr show eth0", { in: container })).toContain(ips[0].address);
  const before = (await library.call("ticks")).value;
  for (let count = 0; count < 5; count++) await library.must("check", "net", c1);
  expect((await library.call("ticks")).value).toBeGreaterThan(before);
  const wrong = await library.call("add", "net", { ...c1, containerID: "c1" });
  expect(wrong.error).toMatchObject({ isArgumentError: true, key: "attachment.containerID" });
  const unknown = await library.call("add", "nett", c1);
  expect(unknown.error).toMatchObject({ isCniError: true, isArgumentError: false, code: 7 });
  expect(unknown.changed).toEqual([]);
  await library.must("del", "net", c1);
  await library.call("close");
  expect((await library.call("children")).value).toBe("");
  expect(await library.must("close")).toBeNull();
  expect((await library.call("check", "net", c1)).error?.message).toContain("it was closed");
});

test("a program goes on as long as it waits for a thread, and no longer; without a listener warnings go to stderr", async () => {
  await using machine = await machineWithNetwork();
  const file = join(installedPackage(), "waiting.ts");
  const begin = `
    import { openInThread } from "patchbay";
    const patchbay = openInThread(${JSON.stringify(options)});`;
  const run = async (work: string) => {
    writeFileSync(file, begin + work);
    return await machine.run([process.execPath, file]);
  };
  const attachment = JSON.stringify(attachmentOf("c1", { capabilities: { portmappings: [] } }));
  await machine.container("c1");
  expect(await run(`patchbay.plan("net", ${attachment}).then((plan) => console.log(plan.length));`)).toEqual({
    code: 0,
    stdout: "2\n",
    stderr: expect.stringMatching(/^patchbay: capability argument "portmappings": .*\n$/),
  });
  expect(await run("")).toEqual({ code: 0, stdout: "", stderr: "" });
  const closing = `
    const all = [patchbay.networks(), patchbay.close(), patchbay.close(), patchbay.networks()];
    console.log((await Promise.allSettled(all)).map(({ value, reason }) => value?.length ?? reason?.message).join("; "));`;
  expect(await run(closing)).toEqual({
    code: 0,
    stdout: "1; ; ; the thread of this patchbay is gone: it was closed\n",
    stderr: "",
  });
});

test("what waits for a thread that cannot begin, or asks it later, learns that it is gone", async () => {
  await using machine = await machineWithNetwork();
  const folder = "/run/user";
  await machine.sh(`cp -r ${installedPackage()} ${folder}; rm ${folder}/node_modules/patchbay/thread.js`);
  await using library = await Library.open(machine, { folder, options: { ...options, isThreaded: true } });
  for (let call = 0; call < 2; call++) {
    const { error } = await library.call("networks");
    expect(error).toMatchObject({ isCniError: true, code: 999 });
    expect(error!.message).toMatch(/^the thread of this patchbay is gone: .*thread\.js/);
  }
});

test("threads of one process do not disturb each other", async () => {
  await using machine = await machineWithNetwork();
  const names = ["c1", "c2", "c3", "c4"];
  for (const name of names) await machine.container(name);
  await using library = await Library.open(machine, { options });
  await library.must("add", "net", attachmentOf("c1"));
  await library.must("del", "net", attachmentOf("c1"));
  const moment = await quietMoment(machine);
  const { error, changed } = await library.call("crowd", names, "net", 10);
  expect([error, changed.filter((one) => !one.startsWith("descriptors"))]).toEqual([undefined, []]);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a thread that the kernel does not let return at once is home when the call returns", async () => {
  await using machine = await machineWithNetwork({ ...conf, plugins: [bridge, { type: "tuning", sysctl }] });
  const container = await machine.container("c1");
  await using library = await Library.open(machine, { options });
  const { pid } = library.process;
  // The first is the way into the container.
  const inject = ["-e", "inject=setns:error=ENOMEM:when=2..20"];
  const tracer = machine.start(["strace", "-qq", "-o", "/dev/null", ...inject, "-p", String(pid)]);
  await machine.sh(`until grep -q "TracerPid:.*[1-9]" /proc/${pid}/status; do sleep 0.01; done`);
  // It is where it was before, or this throws.
  await library.must("add", "net", attachmentOf("c1"));
  tracer.kill("SIGTERM");
  await tracer.exited;
  expect(await machine.sh("sysctl -n net.ipv4.conf.all.arp_filter", { in: container })).toBe("1\n");
  await library.must("del", "net", attachmentOf("c1"));
  await library.process.stdin.end();
  expect(await library.process.stderr.text()).toContain("cannot return from a container's network namespace");
});

test("beside a resident, calls are made in the process, and a second add leaves the first", async () => {
  await using machine = await machineWithNetwork();
  const container = await machine.container("c1");
  const resident = await startResident(machine, 1);
  await untilServed(machine);
  const { served } = await statusOf(machine);
  await using library = await Library.open(machine, { options });
  const attachment = attachmentOf("c1");
  await library.must("add", "net", attachment);
  const addresses = () => machine.sh("ip -o addr show eth0 | sed 's/ tentative//'", { in: container });
  const attached = await addresses();
  expect((await library.call("add", "net", attachment)).error?.message).toContain("already exists");
  expect(await addresses()).toBe(attached);
  await library.must("check", "net", attachment);
  await library.must("del", "net", attachment);
  expect((await statusOf(machine)).served).toBe(served);
  resident.kill("SIGKILL");
  await resident.exited;
});
