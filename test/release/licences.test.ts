/** Every part of the program has the texts that its licence demands, and whatever is released carries them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeArchive } from "../../release/archive.ts";
import { makeProgramPackage } from "../../release/debian-packages.ts";
import { readEdition, root } from "../../release/edition.ts";
import { programLicence, termsOf, textOf, thirdParties } from "../../release/licences.ts";
import { makeProgramRpm } from "../../release/rpm-packages.ts";
import { runtimeParts } from "../../release/runtime-parts.ts";
import { needs } from "../support/needs.ts";

needs("gcc");

/** These texts are without a line of copyright, which each part has of its own. */
const shared = ["MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib"];
/** These are the same for everybody. What parts say of other licences is in texts of their own. */
const general = [
  "Apache-2.0",
  "Artistic-2.0",
  "GCC-exception-3.1",
  "LGPL-2.0",
  "LGPL-2.1",
  "LLVM-exception",
  "MPL-2.0",
];

/** What `GPL-3.0-or-later WITH GCC-exception-3.1` asks for is the exception: it permits to pass on the program without the rest. */
function textsFor(licence: string): string[] {
  if (licence.endsWith(" WITH GCC-exception-3.1")) return ["GCC-exception-3.1"];
  return licence.split(" WITH ").map((one) => one.replace(/-(only|or-later)$/, ""));
}

test.each(runtimeParts().map((part) => [part.name, part] as const))("%s has the texts of its licence", (_, part) => {
  const { licence, texts, copyright } = part;
  for (const name of texts) expect(textOf(name).length).toBeGreaterThan(200);
  const hasOwn = texts.some((name) => !shared.includes(name) && !general.includes(name));
  const isSaid = (one: string) =>
    textsFor(one).every((name) => texts.includes(name) || hasOwn && !general.includes(name));
  for (const term of termsOf(licence)) expect([term, term.some(isSaid)]).toEqual([term, true]);
  // These say "the above copyright notice".
  if (texts.some((name) => shared.includes(name))) expect(copyright.join("")).not.toBe("");
});

test("every text belongs to a part, and none is there twice", () => {
  const names = readdirSync(join(root, "release/licences")).map((file) => file.replace(/\.txt$/, "")).sort();
  expect([...new Set(runtimeParts().flatMap(({ texts }) => texts))].sort()).toEqual(names);
  expect(new Set(names.map((name) => textOf(name).replaceAll(/\s+/g, " "))).size).toBe(names.length);
});

test("the document has each part, who holds its copyright, and the whole of each text", () => {
  const text = thirdParties();
  for (const { name, version, licence, texts, copyright, source } of runtimeParts()) {
    expect(text).toContain(`- ${name} ${version}: ${licence}. Text: ${texts.join(", ")}. ${source}\n`);
    for (const line of copyright) expect(text).toContain(`\n  - ${line}\n`);
    for (const one of texts) {
      expect(text).toContain(`\n## Text: ${one}\n\n\`\`\`\n${textOf(one).trimEnd()}\n\`\`\`\n`);
    }
  }
  expect(text.match(/^```$/gm)).toHaveLength(2 * readdirSync(join(root, "release/licences")).length);
});

test("the licence of the program names that of each part", () => {
  const all = programLicence().split(" AND ");
  for (const { licence } of runtimeParts()) {
    for (const term of termsOf(licence)) expect([term, term.some((one) => all.includes(one))]).toEqual([term, true]);
  }
});

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "licences-"))));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("archives and packages carry it", () => {
  const out = join(directory, "out"), work = join(directory, "work"), program = join(directory, "program");
  for (const folder of [out, work]) mkdirSync(folder);
  writeFileSync(program, "#!/bin/false\n");
  const making = { edition: readEdition(), work, out };
  const archive = makeArchive(program, "x64", making);
  const debian = makeProgramPackage(program, "amd64", making);
  const rpm = makeProgramRpm(program, "x86_64", making);
  const shell = (script: string) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["bash", "-o", "pipefail", "-c", script], { cwd: out });
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
    return stdout.toString();
  };
  expect(shell(`tar -xOzf ${archive} --wildcards '*/licences/THIRD-PARTY.md'`)).toBe(thirdParties());
  expect(shell(`tar -xOzf ${archive} --wildcards '*/LICENSE'`)).toBe(readFileSync(join(root, "LICENSE"), "utf8"));
  const documents = "./usr/share/doc/patchbay";
  expect(shell(`dpkg-deb --fsys-tarfile ${debian} | tar -xO ${documents}/THIRD-PARTY.md`)).toBe(thirdParties());
  const licences = "/usr/share/licenses/patchbay";
  expect(shell(`rpm --query --package --licensefiles ${rpm}`)).toBe(
    `${licences}/LICENSE\n${licences}/THIRD-PARTY.md\n`,
  );
  expect(shell(`rpm2archive - <${rpm} | tar -xOz .${licences}/THIRD-PARTY.md`)).toBe(thirdParties());
  expect(shell(`rpm --query --package --queryformat '%{LICENSE}' ${rpm}`)).toBe(programLicence());
});

// What the LGPL asks for. The document says how.
test("a changed Bun, put into a checkout, is built into the program", () => {
  const clone = join(directory, "clone"), there = join(clone, "node_modules"), here = join(root, "node_modules");
  const run = (words: string[], cwd: string) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(words, { cwd, stdout: "pipe", stderr: "pipe" });
    expect([exitCode, exitCode === 0 ? "" : `${stderr}${stdout}`]).toEqual([0, ""]);
  };
  run(["git", "clone", "-q", root, clone], root);
  mkdirSync(there);
  // Its links are relative: they lead to the Bun of the clone.
  const copied = ["bun", ".bin"];
  for (const name of readdirSync(here)) {
    if (copied.includes(name)) {
      cpSync(join(here, name), join(there, name), { recursive: true, verbatimSymlinks: true });
    } else symlinkSync(join(here, name), join(there, name));
  }
  const changed = "0".repeat(Bun.revision.length), executable = join(there, "bun/bin/bun.exe");
  const isIn = (text: string, path: string) => readFileSync(path).includes(text);
  const bytes = readFileSync(executable);
  for (let at = bytes.indexOf(Bun.revision); at >= 0; at = bytes.indexOf(Bun.revision, at)) bytes.write(changed, at);
  writeFileSync(executable, bytes);
  run(["npm", "run", "build"], clone);
  const program = join(clone, "dist/patchbay");
  expect([isIn(Bun.revision, program), isIn(changed, program)]).toEqual([false, true]);
  run([program, "version"], clone);
}, 300_000);
