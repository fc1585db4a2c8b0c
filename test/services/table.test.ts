/** A third service: its row is all that the command line, `install` and packages need to know of it. */
import { expect, spyOn, test } from "bun:test";
import * as archive from "../../release/archive.ts";
import * as packages from "../../release/packages.ts";
import { parseArguments } from "../../src/frontends/cli/command.ts";
import { commandOf } from "../../src/frontends/cli/commands/daemon.ts";
import { serviceOptions } from "../../src/frontends/cli/commands/install.ts";
import { installUnits } from "../../src/install/units.ts";
import * as output from "../../src/process/output.ts";
import type { ServiceRow, Units } from "../../src/services/service.ts";
import { services } from "../../src/services/table.ts";

const units: Units = {
  socket: { name: "toy.socket", text: "[Socket]\n" },
  service: { name: "toy.service", text: (program) => `[Service]\nExecStart=${program} toy\n` },
};
const began: string[][] = [];
const toy: ServiceRow = {
  command: "toy",
  option: "toy",
  help: { install: "also let systemd run the toy", remove: "remove what --toy made" },
  units,
  packagedUnits: units,
  mark: "# A toy's.",
  outlook: "the toy plays",
  withoutSystemd: (program) => `run ${program} toy\n`,
  daemon: {
    summary: "play",
    flags: { tune: { value: "NAME", help: "which" } },
    notes: "",
    examples: [],
    problemOf: ([flag]) => flag === "-tune=none" ? "there is no such tune" : undefined,
    run: (flags) => began.push([...flags]),
  },
};
test("install has its options, and says what to do where systemd does not run", () => {
  const options = serviceOptions([toy]), said: string[] = [];
  expect(options).toEqual({ toy: { help: toy.help.install }, "no-toy": { help: toy.help.remove } });
  const spy = spyOn(output, "print").mockImplementation((text) => void said.push(text));
  installUnits(toy, "/opt/cni/bin");
  spy.mockRestore();
  expect(said.join("")).toEndWith("have the init system\nrun /opt/cni/bin/patchbay toy\n");
});

test("its command takes its flags, and refuses what is wrong with them", () => {
  const command = commandOf(toy.daemon!);
  const begin = (word: string) => command.run(parseArguments([word], command.options), "");
  begin("--tune=march");
  expect(began).toEqual([["-tune=march"]]);
  expect(() => begin("--tune=none")).toThrow("there is no such tune");
});

test("archives and packages have its units", () => {
  expect(archive.unitEntries([toy])).toEqual([
    { path: "systemd/toy.socket", text: "# A toy's.\n[Socket]\n" },
    { path: "systemd/toy.service", text: "# A toy's.\n[Service]\nExecStart=/opt/cni/bin/patchbay toy\n" },
  ]);
  expect(packages.unitEntries({ units: "units/" }, [toy])[0]).toEqual({
    path: "units/toy.socket",
    text: "[Socket]\n",
  });
  const scripted = { name: "patchbay", directories: ["opt/cni/bin"] };
  for (
    const name of [
      "debian/patchbay.postinst",
      "debian/patchbay.prerm",
      "debian/patchbay.postrm",
      "rpm/patchbay.scriptlets",
    ]
  ) {
    const text = packages.script(`release/${name}`, scripted, [...services, toy]);
    expect({ name, has: [/ toy\.socket/.test(text), / toy\.service/.test(text)] }).toEqual({
      name,
      has: [true, true],
    });
  }
});
