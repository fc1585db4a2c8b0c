/**
 * How the files were made (in-toto statement with a SLSA v1 predicate): from which sources, with which tools. It says what a
 * reader can repeat: the files are the same bytes when somebody builds them again.
 */
import { architectures } from "../compile/architectures.ts";
import type { CLibrary } from "./image/c-library.ts";
import { npmPackages } from "./npm-packages.ts";
import { output } from "./run.ts";
import { type Edition, root } from "./edition.ts";

export interface Digest {
  name: string;
  sha256: string;
}

/** The tools whose version counts for the bytes. */
const DEBIAN_TOOLS = ["dpkg-deb", "rpmbuild"];

export function provenance(edition: Edition, files: readonly Digest[], ofImage: readonly CLibrary[]): string {
  const document = {
    _type: "https://in-toto.io/Statement/v1",
    subject: files.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:patchbay:npm-run-release:v1",
        externalParameters: {
          version: edition.version,
          command: "npm run release",
          environment: { SOURCE_DATE_EPOCH: String(edition.epoch) },
        },
        resolvedDependencies: [
          { name: "patchbay", uri: "git+urn:patchbay", digest: { gitCommit: edition.commit } },
          ...npmSources(),
          ...debianSources(ofImage),
          ...tools(),
        ],
      },
      runDetails: {
        builder: { id: "urn:patchbay:builder:checkout" },
        metadata: { invocationId: `${edition.version}-${edition.commit}` },
      },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Everything that npm installs, with the digests that npm holds it to. */
function npmSources() {
  return npmPackages().map(({ name, purl, sha512 }) => ({ name, uri: purl, digest: { sha512 } }));
}

/** What of Debian's is copied into the image. */
function debianSources(libraries: readonly CLibrary[]) {
  return libraries.map(({ architecture, purl, sha256 }) => ({
    name: `libc6:${architecture}`,
    uri: purl,
    digest: { sha256 },
  }));
}

/** The tools that this machine has: a tool that is not here has made nothing. */
function tools() {
  const compilers = Object.values(architectures).map(({ compiler }) => compiler);
  const names = [...new Set([...compilers, ...DEBIAN_TOOLS])].filter((name) => Bun.which(name) !== null);
  return names.map((name) => ({
    name,
    annotations: { version: output([name, "--version"], root).split("\n")[0]! },
  }));
}
