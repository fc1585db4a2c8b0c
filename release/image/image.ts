/**
 * Makes the container image: the layout of the Open Container Initiative (image-spec 1.0) in a tar
 * archive, for each processor that packages are for. No engine and no daemon has a part in it, and the same inputs give the same bytes.
 *
 * It contains the program, the parts of the C library that it needs, `pause`, and their licences: no shell.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json";
import {
  type Architecture,
  architectureNames,
  architectures,
  type Distributions,
} from "../../compile/architectures.ts";
import { compileNative } from "../../compile/native.ts";
import { fileOfCheckout, KUBERNETES_PLACE, kubernetesEntries } from "../contents.ts";
import type { File } from "../files.ts";
import { licenceEntries, programLicence } from "../licences.ts";
import { tarOf } from "../tar.ts";
import { type CLibrary, cLibrary } from "./c-library.ts";

/** Where the manifests of release/image mount the host's directory. */
export const DEFAULT_DIRECTORY = "/host/opt/cni/bin";
/** The name by which engines know it after an import; release/image/*.yaml have the same. */
export const NAME = "localhost/patchbay";

/** What the image has for a processor. */
interface Contents {
  architecture: Architecture;
  platform: Distributions["image"];
  program: string;
  library: CLibrary;
}

export interface Wanted {
  contents: readonly Contents[];
  version: string;
  /** The time of all files and of the image, in seconds since 1970. */
  epoch: number;
  /** A directory. */
  out: string;
  compile?: typeof compileNative;
}

/** For each processor that packages are for. */
export function imageContents(programOf: (architecture: Architecture) => string): Contents[] {
  return architectureNames.flatMap((architecture) => {
    const { distributions } = architectures[architecture];
    if (distributions === undefined) return [];
    const { image: platform } = distributions, library = cLibrary(distributions);
    return [{ architecture, platform, program: programOf(architecture), library }];
  });
}

/** Returns the path of the archive. */
export function makeImage({ contents, version, epoch, out, compile = compileNative }: Wanted): string {
  const blobs = new Map<string, Uint8Array>();
  const add = (mediaType: string, content: Uint8Array | object) => {
    const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content));
    const digest = `sha256:${sha256(bytes)}`;
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const annotations = describe(version, new Date(epoch * 1000).toISOString().replace(".000Z", "Z"));
  const manifests = contents.map(({ architecture, platform, program, library }) => {
    const layer = tarOf([...own(program, compile("pause", architecture)), ...library.files], epoch);
    return {
      ...add("application/vnd.oci.image.manifest.v1+json", {
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: add("application/vnd.oci.image.config.v1+json", configOf(platform, layer, annotations)),
        layers: [add("application/vnd.oci.image.layer.v1.tar+gzip", Bun.gzipSync(layer))],
        annotations,
      }),
      platform: ofLinux(platform),
    };
  });
  const index = add("application/vnd.oci.image.index.v1+json", indexOf(manifests, annotations));
  // The first is for tools of the standard, the second for containerd.
  const names = { "org.opencontainers.image.ref.name": version, "io.containerd.image.name": `${NAME}:${version}` };
  return write(join(out, `patchbay-${version}-oci.tar`), indexOf([{ ...index, annotations: names }]), blobs, epoch);
}

function own(program: string, pause: Uint8Array): File[] {
  return [
    { path: "usr/bin/patchbay", copyOf: program, isExecutable: true },
    { path: "usr/bin/pause", bytes: pause, isExecutable: true },
    { path: "usr/share/doc/patchbay/LICENSE", text: fileOfCheckout("LICENSE") },
    ...licenceEntries("usr/share/doc/patchbay/"),
    ...kubernetesEntries(KUBERNETES_PLACE),
    // Scanners go by it to judge the C library.
    { path: "etc/os-release", text: 'PRETTY_NAME="Patchbay"\nID=debian\nVERSION_ID="12"\n' },
  ];
}

function describe(version: string, created: string): Record<string, string> {
  const values = {
    title: manifest.name,
    description: manifest.description,
    licenses: programLicence(),
    version,
    created,
  };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [`org.opencontainers.image.${key}`, value]));
}

function ofLinux({ architecture, variant }: Distributions["image"]): object {
  return { architecture, os: "linux", variant };
}

function configOf(platform: Distributions["image"], layer: Uint8Array, labels: Record<string, string>): object {
  const created = labels["org.opencontainers.image.created"];
  return {
    created,
    ...ofLinux(platform),
    config: {
      User: "0:0",
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      Entrypoint: ["/usr/bin/patchbay"],
      Cmd: ["install", DEFAULT_DIRECTORY],
      WorkingDir: "/",
      Labels: labels,
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created, created_by: "release/image/image.ts" }],
  };
}

function indexOf(manifests: object[], annotations?: Record<string, string>): object {
  return { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests, annotations };
}

function write(path: string, index: object, blobs: ReadonlyMap<string, Uint8Array>, epoch: number): string {
  const entries = [
    { path: "oci-layout", text: JSON.stringify({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", text: JSON.stringify(index) },
    ...[...blobs].map(([digest, bytes]) => ({ path: `blobs/${digest.replace(":", "/")}`, bytes })),
  ];
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, tarOf(entries, epoch));
  return path;
}

function sha256(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}
