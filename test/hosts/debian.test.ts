/**
 * The program on other releases of Debian than this machine's: the same file runs with their C library, their libnl, iptables
 * and shell, older and newer. The kernel is this machine's.
 */
import { expect, test } from "bun:test";
import { debianRelease, type Release, releases } from "./roots.ts";
import { chainIsAttached, onHost, pluginsAreCalled, uninstalls } from "./story.ts";

const backends = ["nftables", "iptables"] as const;

for (const [release, glibc] of Object.entries(releases) as [Release, string][]) {
  const host = () => ({ root: debianRelease(release) });

  test(`${release} has glibc ${glibc}, and the program uses it`, () =>
    onHost(host(), async (inside) => {
      expect(await inside.sh("/lib/x86_64-linux-gnu/libc.so.6")).toContain(`stable release version ${glibc}.`);
      const maps = await inside.sh(`
        /opt/program/patchbay serve --rehearsals=0 --workers=1 & serving=$!
        until /opt/program/patchbay serve --status | grep -q "calls of this program are served"; do sleep 0.1; done
        cat /proc/$serving/maps
        kill $serving
        wait $serving || true`);
      expect(maps).toMatch(/ \/usr\/lib\/x86_64-linux-gnu\/libc[-.]/);
    }));

  for (const backend of backends) {
    test(`${release}: ADD, CHECK, GC and DEL of an installed plugin, ${backend}`, () =>
      pluginsAreCalled(host(), backend));
    test(`${release}: a chain, ${backend}`, () => chainIsAttached(host(), backend, false));
    test(`${release}: a chain through a resident, ${backend}`, () => chainIsAttached(host(), backend, true));
  }
  test(`${release}: uninstalled`, () => uninstalls(host()));
}
