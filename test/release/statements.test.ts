/** What a release says of itself: bill of materials, provenance, digests and their signature. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import lock from "../../package-lock.json";
import { readEdition } from "../../release/edition.ts";
import { provenance } from "../../release/provenance.ts";
import { notLinked, runtimeParts, versionedLibraries } from "../../release/runtime-parts.ts";
import { billOfMaterials } from "../../release/sbom.ts";
import { digestsIn, sign, SIGNATURE, SIGNED_FOR, SUMS, writeSums } from "../../release/sums.ts";
import { needs } from "../support/needs.ts";

needs("gcc");

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), "release-"))));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const purl = "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64";
const ofImage = [{ architecture: "amd64", version: "2.36-9+deb12u10", purl, sha256: "0".repeat(64), files: [] }];
const edition = { ...readEdition(), version: "9.8.7", epoch: 1_700_000_000 };

function run(words: string[], stdin = ""): { code: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, {
    cwd: directory,
    stdin: Buffer.from(stdin),
    stderr: "pipe",
  });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

test("every library that Bun names is in the list of parts, or in the list of what is none", () => {
  expect([...versionedLibraries, ...notLinked].sort()).toEqual(Object.keys(process.versions).sort());
  for (const { name, version, licence, source } of runtimeParts()) {
    expect([name, version === "", licence === "", source.startsWith("https://")]).toEqual([name, false, false, true]);
  }
});

/** Debian's jsonschema, with the schema that CycloneDX publishes in its npm package. */
const validate = `
import json, sys, pathlib, jsonschema
folder = pathlib.Path(sys.argv[1])
schemas = {path.name: json.loads(path.read_text()) for path in folder.glob("*.schema.json")}
store = {schema["$id"]: schema for schema in schemas.values() if "$id" in schema}
schema = schemas["bom-1.6.SNAPSHOT.schema.json"]
resolver = jsonschema.RefResolver(schema["$id"], schema, store)
errors = jsonschema.Draft7Validator(schema, resolver=resolver).iter_errors(json.load(sys.stdin))
print("".join(f"{'/'.join(map(str, error.path))}: {error.message}\\n" for error in errors), end="")
`;
const schemas = join(import.meta.dir, "../../node_modules/@cyclonedx/cyclonedx-library/res/schema");

test("the bill of materials is valid, and an error in it would be found", () => {
  const text = billOfMaterials(edition, ofImage);
  expect(run(["/usr/bin/python3", "-W", "ignore", "-c", validate, schemas], text)).toEqual({ code: 0, output: "" });
  const wrong = run(
    ["/usr/bin/python3", "-W", "ignore", "-c", validate, schemas],
    text.replace('"type": "application"', '"type": "programme"'),
  );
  expect(wrong.output).toContain("metadata/component/type: 'programme' is not one of");
  const unlicensed = run(
    ["/usr/bin/python3", "-W", "ignore", "-c", validate, schemas],
    text.replace('"expression": "Zlib"', '"expresion": "Zlib"'),
  );
  expect(unlicensed.output).not.toBe("");
});

test("the bill of materials has what is inside, and, excluded, everything that npm installs for the build", () => {
  const { components, metadata, serialNumber } = JSON.parse(billOfMaterials(edition, ofImage));
  const named = (scope: string) =>
    components.filter((one: { scope: string }) => one.scope === scope).map((one: { name: string }) => one.name);
  expect(named("required")).toContain("WebKit");
  expect(named("optional")).toEqual(["libc6"]);
  const installed = Object.entries(lock.packages as Record<string, { optional?: boolean }>)
    .filter(([path, { optional }]) => path !== "" && !optional).map(([path]) =>
      path.replace(/^.*node_modules\//, "")
    );
  expect(named("excluded").sort()).toEqual(installed.sort());
  expect(metadata.component).toMatchObject({ name: "patchbay", version: "9.8.7" });
  expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("the provenance's digests are the files', and it names sources, tools and what npm installs", () => {
  writeFileSync(join(directory, "one"), "1");
  writeFileSync(join(directory, "two"), "22");
  const statement = JSON.parse(provenance(edition, digestsIn(directory), ofImage));
  const sums = run(["sha256sum", "one", "two"]).output;
  const said = statement.subject.map(({ name, digest }: { name: string; digest: { sha256: string } }) =>
    `${digest.sha256}  ${name}\n`
  );
  expect(said.join("")).toBe(sums);
  expect(statement).toMatchObject({
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://slsa.dev/provenance/v1",
  });
  const { resolvedDependencies } = statement.predicate.buildDefinition;
  const find = (name: string) => resolvedDependencies.find((one: { name: string }) => one.name === name);
  expect(find("patchbay").digest.gitCommit).toBe(edition.commit);
  expect(find("@oven/bun-linux-x64").digest.sha512).toMatch(/^[0-9a-f]{128}$/);
  expect(find("libc6:amd64").uri).toBe(purl);
  expect(find("x86_64-linux-gnu-gcc").annotations.version).toContain("gcc");
});

test("a signature holds for the digests alone: a flipped bit, another key and another purpose are refused", () => {
  rmSync(directory, { recursive: true });
  directory = mkdtempSync(join(tmpdir(), "release-"));
  writeFileSync(join(directory, "file"), "content\n");
  writeSums(directory);
  const [key, other] = ["key", "other"].map((name) => `${directory}-${name}`) as [string, string];
  for (const path of [key, other]) run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]);
  try {
    sign(directory, key);
    const allow = (path: string) =>
      writeFileSync(`${key}-allowed`, `releases ${readFileSync(`${path}.pub`, "utf8").trim()}\n`);
    const verify = (purpose = SIGNED_FOR) =>
      run(
        ["ssh-keygen", "-Y", "verify", "-f", `${key}-allowed`, "-I", "releases", "-n", purpose, "-s", SIGNATURE],
        readFileSync(join(directory, SUMS), "utf8"),
      ).code;
    allow(key);
    expect(verify()).toBe(0);
    expect(run(["sha256sum", "--check", SUMS])).toEqual({ code: 0, output: "file: OK\n" });
    expect(verify("another")).not.toBe(0);
    allow(other);
    expect(verify()).not.toBe(0);
    allow(key);
    const sums = readFileSync(join(directory, SUMS));
    sums[3]! ^= 1;
    writeFileSync(join(directory, SUMS), sums);
    expect(verify()).not.toBe(0);
    sums[3]! ^= 1;
    writeFileSync(join(directory, SUMS), sums);
    expect(verify()).toBe(0);
    writeFileSync(join(directory, "file"), "contend\n");
    expect(run(["sha256sum", "--check", "--status", SUMS]).code).toBe(1);
  } finally {
    for (const path of [key, other]) for (const file of [path, `${path}.pub`]) rmSync(file, { force: true });
    rmSync(`${key}-allowed`, { force: true });
  }
});
