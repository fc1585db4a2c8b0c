/** Directories of plugins: hidden ones, links in them, names that are no plain words. */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { OWN_PLUGINS } from "../../src/conformance/run-directories.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

test("a directory that the run hides, and a relative one with links, is found all the same", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir -p /run/mine/bin /var/lib/mine");
  await machine.sh(`printf '#!/bin/sh\\nexec ${OWN_PLUGINS}/loopback\\n' > /run/mine/bin/loopback
    chmod +x /run/mine/bin/loopback; ln -s /run/mine/bin /var/lib/mine/plugins`);
  const { stdout, code } = await machine.run(["sh", "-c", `cd /var/lib/mine && ${PATCHBAY} conformance plugins`]);
  expect(stdout).toMatch(
    /^loopback: \d+ passed, 0 failed, .*\(\/run\/mine\/bin\/loopback, main, asked in 1\.1\.0\)$/m,
  );
  expect(code).toBe(0);
});

test("where links of the directory lead is shown, or the link is refused by name", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir -p /var/lib/k/HASH/bin /var/lib/k/cni /run/netns /run/patchbay-plugins
    printf '#!/bin/sh\\nexec ${OWN_PLUGINS}/loopback\\n' > /var/lib/k/HASH/bin/cni
    chmod +x /var/lib/k/HASH/bin/cni; ln -s HASH /var/lib/k/current
    ln -s ../HASH/bin/cni /var/lib/k/cni/loopback; ln -s /var/lib/k/current/bin/cni /var/lib/k/cni/new-loopback
    cp ${PATCHBAY} /var/lib/program`);
  const { stdout, code } = await machine.run(["/var/lib/program", "conformance", "/var/lib/k/cni"]);
  expect(stdout).toMatch(/^loopback: \d+ passed, 0 failed, .*\n(.*\n)*new-loopback: \d+ passed, 0 failed/m);
  expect(code).toBe(0);

  await machine.sh("cp /var/lib/k/HASH/bin/cni /run/loopback; ln -s /run/loopback /var/lib/k/cni/in-run");
  await machine.sh("for d in netns patchbay-plugins; do cp /run/loopback /run/$d/loopback; done");
  const refusals = {
    "/run": /: \/run cannot be where the plugins are, because the run needs \/run for itself: copy/,
    "/run/netns": /: \/run\/netns cannot be .* needs \/run\/netns for itself: copy/,
    "/run/patchbay-plugins": /: \/run\/patchbay-plugins cannot be .* for itself: copy/,
    "/var/lib/k/cni":
      /: the link \/var\/lib\/k\/cni\/in-run leads to \/run, and the run needs \/run for itself: copy/,
  };
  for (const [directory, said] of Object.entries(refusals)) {
    const refused = await machine.run([PATCHBAY, "conformance", directory]);
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({ code: 2, stderr: expect.stringMatching(said) });
  }
  expect((await machine.run([PATCHBAY, "conformance", "/var/lib/k/cni", "loopback"])).code).toBe(0);
});

test("names are told as they are: quoted for a shell, without control characters, or as not asked", async () => {
  await using machine = await openMachine();
  await machine.sh(
    `mkdir "/run/my plugins"; cd "/run/my plugins"; printf '#!/bin/sh\\nexit 1\\n' > lonely; chmod +x lonely
    cp -p lonely "$(printf 'two\\033[31m')"; cp -p lonely "$(printf 'not\\377')"`,
  );
  const { stdout, stderr, code } = await machine.run([PATCHBAY, "conformance", "/run/my plugins"]);
  expect(code).toBe(1);
  expect(stdout).toContain(
    "CNI_COMMAND=VERSION CNI_PATH='/run/my plugins:/run/patchbay-plugins' '/run/my plugins/lonely'\n",
  );
  expect(stdout).toMatch(/^2 plugins: /m);
  expect(stderr).toBe("/run/my plugins/not\ufffd is not asked: its name is not UTF-8; rename it\n");
  const typed =
    `umask 022; script -qec "${PATCHBAY} conformance '/run/my plugins' --junit /run/result.xml >/dev/null" /dev/null`;
  const terminal = await machine.run(["sh", "-c", typed]);
  expect(terminal.stdout).toContain("two\\u001b[31m: 0 of ");
  expect(terminal.stdout).not.toContain("two\x1b");
  expect((await machine.sh("stat -c %a /run/result.xml")).trim()).toBe("644");
});

test("links that lead nowhere are no hindrance, and a plugin that is named twice is asked once", async () => {
  await using machine = await openMachine();
  await machine.sh(`mkdir /run/mine; cp /bin/true /run/mine/one
    ln -s /nowhere/directory/x /run/mine/away; ln -s /etc/passwd/x /run/mine/in-file; ln -s loop /run/mine/loop`);
  const { stdout, code } = await machine.run([PATCHBAY, "conformance", "/run/mine", "one", "one"]);
  expect({ code, last: stdout.trimEnd().split("\n").at(-1) }).toEqual({
    code: 1,
    last: expect.stringMatching(/^1 plugin: /),
  });
});

test("a chroot that is the same directory, mounted once more, is told from it", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir /run/root; mount --rbind / /run/root");
  const { code, stderr } = await machine.run([
    "chroot",
    "/run/root",
    PATCHBAY,
    "conformance",
    patchbayPlugins(),
    "static",
  ]);
  expect([code, stderr]).toEqual([3, expect.stringContaining(": this is a chroot, ")]);
});

test("in a chroot it does not run: it would come out, and change what is mounted there", async () => {
  await using machine = await openMachine();
  const root = "/run/root";
  await machine.sh(`
    mount --make-rshared /
    mkdir ${root}; mount -t tmpfs tmpfs ${root}
    for folder in usr lib lib64 bin etc proc dev sys tmp; do mkdir ${root}/$folder; mount --rbind /$folder ${root}/$folder; done
    mkdir -p ${root}/run ${root}/var/lib ${root}${PATCHBAY.slice(0, PATCHBAY.lastIndexOf("/"))} ${root}/opt/p
    touch ${root}${PATCHBAY}; mount --bind ${PATCHBAY} ${root}${PATCHBAY}
    cp /bin/true ${root}/opt/p/one`);
  const before = await machine.sh("cat /proc/self/mounts");
  const { code, stdout, stderr } = await machine.run(["chroot", root, PATCHBAY, "conformance", "/opt/p"]);
  expect({ code, stdout, stderr }).toEqual({
    code: 3,
    stdout: "",
    stderr:
      "patchbay conformance: the run itself failed: this is a chroot, and what is mounted outside of it cannot be " +
      "told apart: run it outside\n",
  });
  expect(await machine.sh("cat /proc/self/mounts")).toBe(before);
});
