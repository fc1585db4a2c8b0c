/** Strange things in place of a file of netavark or aardvark-dns: setup, reload and teardown end, and follow no link. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import {
  addNames,
  daemons,
  DIRECTORY,
  doNames,
  names,
  ND,
  openBridged,
  removeNames,
  web,
} from "../../support/netavark/names.ts";
import { netavark } from "../../support/netavark/netavark.ts";
import { spoilings } from "../../support/state-spoilings.ts";

const OUTSIDE = "/run/outside";

const outside = (machine: Machine) =>
  machine.sh(`cd ${OUTSIDE}; find . -printf '%p %y %U %m %s\\n' | sort; find . -type f -exec cat {} +`);
const spoil = (machine: Machine, path: string, script: string) =>
  machine.sh(`P=${path} D=${OUTSIDE}; mkdir -p "$D"; ${script}`);

test("the file of a network, and the lock of aardvark-dns's files", async () => {
  await using machine = await openBridged();
  for (const path of [`${DIRECTORY}/n1`, `${ND}/aardvark.lock`]) {
    for (const [what, script] of Object.entries(spoilings)) {
      expect(await addNames(machine, web)).toEqual([true]);
      await spoil(machine, path, script);
      const before = await outside(machine);
      const { outcomes: [added] } = await doNames(machine, [{
        verb: "add",
        spec: names("web2", "10.55.0.8", ["two"]),
      }]);
      // Only a trusted file is read. A lock that is not trusted is ignored, so nobody can block it.
      if (path.endsWith("lock")) expect({ what, added }).toEqual({ what, added: true });
      else expect(added).toContain(`${path} is not trusted: `);
      expect({ what, outcomes: await removeNames(machine, web, names("web2", "10.55.0.8", [])) })
        .toEqual({ what, outcomes: ["removed", "removed"] });
      expect({ what, outside: await outside(machine) }).toEqual({ what, outside: before });
      await machine.sh(`rm -rf ${path} ${OUTSIDE}`);
      expect(await removeNames(machine, web)).toEqual(["removed"]);
    }
  }
});

test("the file with the number of aardvark-dns's process", async () => {
  await using machine = await openBridged();
  for (const [what, script] of Object.entries(spoilings)) {
    expect(await addNames(machine, web)).toEqual([true]);
    await spoil(machine, `${DIRECTORY}/aardvark.pid`, script);
    const before = await outside(machine);
    const { outcomes: [added] } = await doNames(machine, [{
      verb: "add",
      spec: names("web2", "10.55.0.8", ["two"]),
    }]);
    // The process is found without the file, and a missing file is written again.
    if (what !== "a directory") expect({ what, added }).toEqual({ what, added: true });
    await machine.sh(`[ ! -d ${DIRECTORY}/aardvark.pid ] || rmdir ${DIRECTORY}/aardvark.pid`);
    const removed = await removeNames(machine, web, names("web2", "10.55.0.8", []));
    expect({ what, removed, outside: await outside(machine) })
      .toEqual({ what, removed: ["removed", "removed"], outside: before });
    expect(await daemons(machine)).toEqual([]);
    await machine.sh(`rm -rf ${OUTSIDE}`);
  }
});

test("the files from which rules are written again, and their lock", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const input = containerIn([{ network: bridgeNetwork(8) }], 1, [published(8080, 80)]);
  await attach(machine, "setup", container, input);
  const files = (await machine.sh(`find ${ND}/firewall -type f`)).trim().split("\n");
  expect(files).toHaveLength(4);
  await attach(machine, "teardown", container, input);
  for (const path of files) {
    for (const [what, script] of Object.entries(spoilings)) {
      expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
      await spoil(machine, path, script);
      // As netavark attached it: only the files say what its rules were.
      await machine.sh("rm -r /run/patchbay");
      const before = await outside(machine);
      const { code, stderr } = await netavark(machine, ["-c", ND, "firewall-reload"], undefined);
      // Without the driver's name it does not know where to write the rules.
      const isDriver = path.endsWith("firewall-driver");
      expect({ path, what, code }).toEqual({ path, what, code: isDriver ? 1 : 0 });
      if (!path.endsWith(".lock") && !isDriver) expect(stderr).toContain(path);
      const torn = await attach(machine, "teardown", container, input);
      expect({ path, what, code: torn.code }).toEqual({ path, what, code: 0 });
      expect({ what, outside: await outside(machine) }).toEqual({ what, outside: before });
      await machine.sh(`rm -rf ${path} ${OUTSIDE}`);
      await attach(machine, "teardown", container, input);
    }
  }
});
