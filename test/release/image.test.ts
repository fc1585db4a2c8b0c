/**
 * The container image, as tools of others read it. The programs are short texts, because only their places count.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { compileNative } from "../../compile/native.ts";
import { kubernetesEntries } from "../../release/contents.ts";
import { imageContents, makeImage } from "../../release/image/image.ts";
import { programLicence, thirdParties } from "../../release/licences.ts";
import { PATCHBAY } from "../support/plugins.ts";

const VERSION = "1.2.3", EPOCH = 1_700_000_000;

let directory: string, short: string;
beforeAll(() => {
  directory = mkdtempSync(`${tmpdir()}/image-`);
  short = `${directory}/program`;
  writeFileSync(short, "#!/usr/bin/pause\n");
});
afterAll(() => rmSync(directory, { recursive: true }));

function make(out: string): string {
  return makeImage({
    contents: imageContents(() => short),
    version: VERSION,
    epoch: EPOCH,
    out: `${directory}/${out}`,
    // The compiler for arm64 is not among what tests may need.
    compile: (name) => compileNative(name, "x64"),
  });
}

function run(command: readonly string[], cwd = directory): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd, stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: exit ${exitCode}\n${stderr}`);
  return stdout.toString();
}

const json = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const sha256 = (bytes: Uint8Array) => `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
const platforms = [
  ["amd64", "lib/x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"],
  ["arm64", "lib/aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1"],
] as const;

describe("the archive", () => {
  let archive: string, layout: string;
  beforeAll(() => {
    archive = make("first");
    layout = `${directory}/layout`;
    mkdirSync(layout);
    run(["tar", "-xf", archive, "-C", layout]);
  });
  const blob = (digest: string) => `${layout}/blobs/${digest.replace(":", "/")}`;
  const named = () => `oci-archive:${archive}:${VERSION}`;

  test("is the same, byte for byte, from another directory at another time", () => {
    expect(archive).toEndWith(`/patchbay-${VERSION}-oci.tar`);
    expect(readFileSync(make("second")).equals(readFileSync(archive))).toBe(true);
    const listed = run(["tar", "--list", "--verbose", "--numeric-owner", "--full-time", "--utc", "-f", archive]);
    for (const line of listed.trim().split("\n")) expect(line).toMatch(/ 0\/0 .* 2023-11-14 22:13:20 /);
  });

  test("every blob has its digest for a name, and each is referred to by size and digest", () => {
    for (const name of readdirSync(`${layout}/blobs/sha256`)) {
      expect(sha256(readFileSync(`${layout}/blobs/sha256/${name}`))).toBe(`sha256:${name}`);
    }
    const referred = new Set<string>();
    const follow = (document: object): void =>
      JSON.stringify(document, (_, value) => {
        if (typeof value?.digest !== "string" || referred.has(value.digest)) return value;
        referred.add(value.digest);
        expect(lstatSync(blob(value.digest)).size).toBe(value.size);
        if (value.mediaType.endsWith("+json")) follow(json(blob(value.digest)));
        return value;
      }) as unknown as void;
    follow(json(`${layout}/index.json`));
    expect([...referred].sort()).toEqual(
      readdirSync(`${layout}/blobs/sha256`).map((name) => `sha256:${name}`).sort(),
    );
  });

  test.each(platforms)("skopeo finds %s in it", (architecture) => {
    const found = JSON.parse(run(["skopeo", "inspect", "--override-arch", architecture, named()]));
    expect(found).toMatchObject({ Architecture: architecture, Os: "linux", Created: "2023-11-14T22:13:20Z" });
    expect(found.Labels).toMatchObject({
      "org.opencontainers.image.version": VERSION,
      "org.opencontainers.image.licenses": programLicence(),
    });
  });

  test.each(platforms)(
    "umoci unpacks %s: the program, the C library, their licences, the manifests of a cluster, and nothing else",
    (...platform) => {
      const [architecture, libraries, loader] = platform, one = `${directory}/${architecture}`;
      run(["skopeo", "copy", "-q", "--override-arch", architecture, named(), `oci:${one}:tag`]);
      run(["umoci", "unpack", "--image", `${one}:tag`, `${one}.bundle`]);
      const tree = `${one}.bundle/rootfs`;
      const files = readdirSync(tree, { recursive: true, withFileTypes: true }).filter((entry) =>
        !entry.isDirectory()
      );
      expect(files.map((file) => `${file.parentPath}/${file.name}`.slice(tree.length + 1)).sort()).toEqual([
        "etc/os-release",
        ...["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"].map((name) => `${libraries}/${name}`),
        loader,
        "usr/bin/patchbay",
        "usr/bin/pause",
        "usr/share/doc/libc6/copyright",
        "usr/share/doc/patchbay/LICENSE",
        "usr/share/doc/patchbay/THIRD-PARTY.md",
        ...kubernetesEntries("usr/share/patchbay/kubernetes/").map(({ path }) => path),
        "var/lib/dpkg/status.d/libc6",
      ].sort());
      expect(readFileSync(`${tree}/usr/bin/patchbay`, "utf8")).toBe(readFileSync(short, "utf8"));
      expect(readFileSync(`${tree}/usr/share/doc/patchbay/THIRD-PARTY.md`, "utf8")).toBe(thirdParties());
      expect(readFileSync(`${tree}/var/lib/dpkg/status.d/libc6`, "utf8")).toContain(
        `\nArchitecture: ${architecture}\n`,
      );
      // e_machine of elf(5): 62 is x86-64, 183 is arm64.
      const machine = (path: string) => readFileSync(`${tree}/${path}`).readUInt16LE(18);
      for (const path of [loader, `${libraries}/libc.so.6`]) {
        expect(machine(path)).toBe(
          architecture === "amd64" ? 62 : 183,
        );
      }
      for (const file of files) {
        const { mode } = lstatSync(`${file.parentPath}/${file.name}`);
        expect(mode & 0o7777).toBe(/\/usr\/bin\/|\/ld-/.test(`${file.parentPath}/${file.name}`) ? 0o755 : 0o644);
      }
    },
  );

  test("what the program needs of the C library is in it", () => {
    const { stdout } = Bun.spawnSync(["readelf", "--dynamic", PATCHBAY]);
    const needed = [...stdout.toString().matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name!);
    const listed = run(["tar", "-tzf", blob(layerOf("amd64"))]);
    expect(needed).toContain("libc.so.6");
    for (const name of needed) expect(listed).toContain(`/${name}\n`);
  });

  test("its layers have the digests that the configuration says", () => {
    for (const [architecture] of platforms) {
      const { config, layers } = manifestOf(architecture);
      const [layer] = json(blob(config.digest)).rootfs.diff_ids;
      expect(layers).toHaveLength(1);
      expect(sha256(Bun.gunzipSync(readFileSync(blob(layers[0].digest))))).toBe(layer);
    }
  });

  function manifestOf(architecture: string) {
    const [{ digest }] = json(`${layout}/index.json`).manifests;
    const { manifests } = json(blob(digest));
    return json(
      blob(manifests.find((one: { platform: object }) => Bun.deepMatch({ architecture }, one.platform)).digest),
    );
  }

  function layerOf(architecture: string): string {
    return manifestOf(architecture).layers[0].digest;
  }
});
