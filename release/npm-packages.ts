/** What npm installs for the build, by the lockfile, with the digests that npm holds it to. */
import lock from "../package-lock.json";

interface Locked {
  version?: string;
  license?: string;
  integrity?: string;
  optional?: boolean;
}

export function npmPackages() {
  return Object.entries(lock.packages as Record<string, Locked>).filter(([path]) => path !== "")
    .map(([path, { version, license, integrity, optional }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return {
        name,
        version: version!,
        purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
        licence: license,
        sha512: sha512Of(name, integrity!),
        // Only some platforms have it.
        isOptional: optional === true,
      };
    });
}

/** npm writes a digest in base 64 behind its algorithm's name. */
function sha512Of(name: string, integrity: string): string {
  const [algorithm, digest] = integrity.split("-") as [string, string];
  if (algorithm !== "sha512") {
    throw new Error(`package-lock.json has a digest of ${name} by ${algorithm}, not sha512: npm install it again`);
  }
  return Buffer.from(digest, "base64").toString("hex");
}
