/** RPM's packages in an empty root: installed, upgraded, and erased without a trace. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { makeLinksRpm, makeProgramRpm } from "../../release/rpm-packages.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { PERMISSION, PERMISSION_TEXT } from "../../src/process/resident-by-call.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { makePackageVersions, NEWER, type PackageVersions } from "../support/package-versions.ts";

let packages: PackageVersions;
beforeAll(() => {
  packages = makePackageVersions({ architecture: "x86_64", makeProgram: makeProgramRpm, makeLinks: makeLinksRpm });
}, 600_000);
afterAll(() => packages[Symbol.dispose]());

/** A root with a C library, and busybox(1) for scriptlets: no other distribution's files are there. */
async function emptyRoot(machine: Machine): Promise<string> {
  const root = "/run/root", libraries = "usr/lib/x86_64-linux-gnu";
  await machine.sh(`
    mkdir -p ${root}/proc ${root}/run ${root}/tmp ${root}/etc ${root}/${libraries} ${root}/usr/lib64 ${root}/usr/bin
    for folder in lib lib64 bin; do ln -s usr/$folder ${root}/$folder; done
    for folder in ${libraries} usr/lib64; do mount --bind -o ro /$folder ${root}/$folder; done
    mount -t proc proc ${root}/proc
    mkdir ${root}/dev
    mknod -m 666 ${root}/dev/null c 1 3
    cp /bin/busybox ${root}/usr/bin
    for name in sh rmdir readlink; do ln -s busybox ${root}/usr/bin/$name; done
    rpm --root ${root} --initdb
  `);
  return root;
}

/** Without its database. Directories that everybody has are a distribution's own. */
async function filesIn(machine: Machine, root: string): Promise<string> {
  return await machine.sh(
    `cd ${root}; find . -xdev ! -path './var/*' \\( ! -type d -o -name '*patchbay*' \\) | LC_ALL=C sort`,
  );
}

test("installed, upgraded, downgraded and erased", async () => {
  await using machine = await openMachine();
  const root = await emptyRoot(machine), before = await filesIn(machine, root);
  // Its database knows of no C library here, and Debian's rpm says each time that it is not Debian's way.
  const rpm = async (...words: string[]) => {
    const call = ["rpm", "--root", root, "--nodeps", ...words];
    const { code, stdout, stderr } = await machine.run(call);
    const said = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("rpm: "));
    expect([words[0], code, said]).toEqual([words[0]!, 0, []]);
    return stdout;
  };
  await rpm("--install", ...packages.older);
  const called = await machine.sh(`chroot ${root} /usr/libexec/cni/bridge </dev/null 2>&1 || true`);
  expect(called).toContain("CNI");
  // This root has no systemd.
  const permission = `${root}/usr/lib/patchbay/${PERMISSION}`;
  expect(await machine.sh(`cat ${permission}`)).toBe(`${PERMISSION_TEXT}\n`);
  await machine.sh(`rm ${permission}`);
  await rpm("--upgrade", ...packages.newer);
  await rpm("--upgrade", "--oldpackage", ...packages.older);
  await rpm("--upgrade", ...packages.newer);
  const names = ["patchbay", "patchbay-cni", "patchbay-opt-cni"];
  expect((await machine.run(["test", "-e", permission])).code).toBe(1);
  await machine.sh(`touch ${permission}`);
  expect((await rpm("--verify", ...names)).trim()).toBe("");
  const links = await machine.sh(
    `chroot ${root} sh -c 'for link in /usr/libexec/cni/* /opt/cni/bin/*; do readlink -f $link; done'`,
  );
  expect(links).toBe("/usr/lib/patchbay/patchbay\n".repeat(2 * pluginNames.length));
  const units = `${root}/usr/lib/systemd/system`;
  expect(await machine.sh(`readlink -f ${units}/cni-dhcp.socket ${units}/cni-dhcp.service`)).toBe(
    `${units}/patchbay-dhcp.socket\n${units}/patchbay-dhcp.service\n`,
  );
  await rpm("--erase", ...names.toReversed());
  expect(await filesIn(machine, root)).toBe(before);
});

test("rpmlint finds no error", () => {
  const words = ["rpmlint", "--rpmlintrc", join(import.meta.dir, "../../release/rpm/rpmlintrc"), ...packages.newer];
  const said = Bun.spawnSync(words).stdout.toString();
  expect(said).toContain("3 packages");
  expect(said.split("\n").filter((line) => line.includes(" E: "))).toEqual([]);
});

test("what the packages say of themselves", () => {
  const query = (file: string, ...words: string[]) =>
    Bun.spawnSync(["rpm", "--query", "--package", ...words, file]).stdout.toString().trim().split("\n").sort();
  const [program, links, opt] = packages.newer;
  expect(query(links, "--provides")).toEqual([
    "container-network-stack = 1",
    "containernetworking-plugins = 1.10.0",
    `patchbay-cni = ${NEWER}-1`,
  ]);
  expect(query(links, "--conflicts")).toEqual(["containernetworking-plugins"]);
  expect(query(opt, "--provides")).toContain("kubernetes-cni = 1.10.0");
  expect(query(program, "--requires")).toContain("glibc >= 2.17");
  expect(query(program, "--list")).toEqual(
    expect.arrayContaining(
      readdirSync(join(import.meta.dir, "../../release/kubernetes")).map((name) =>
        `/usr/share/patchbay/kubernetes/${name}`
      ),
    ),
  );
  expect(query(program, "--queryformat", "%{ARCH} %{BUILDHOST}")).toEqual(["x86_64 localhost"]);
});
