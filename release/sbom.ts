/** A bill of materials (CycloneDX 1.6): what is inside of the program, and, as excluded, what it is built with. */
import lock from "../package-lock.json";
import manifest from "../package.json";
import { type Edition, SUMMARY } from "./edition.ts";
import { runtimeParts } from "./runtime-parts.ts";

interface Locked {
  version?: string;
  license?: string;
  integrity?: string;
  optional?: boolean;
}

export function billOfMaterials(edition: Edition): string {
  const inside = runtimeParts().map((part) => ({
    type: part.name === "bun" ? "platform" : "library",
    "bom-ref": `part:${part.name}`,
    name: part.name,
    version: part.version,
    scope: "required",
    licenses: [{ expression: part.licence }],
    ...part.purl === undefined ? {} : { purl: part.purl },
    externalReferences: [{ type: "vcs", url: part.source }],
  }));
  const tools = npmPackages().map(({ name, version, license, integrity }) => ({
    type: "library",
    "bom-ref": `tool:${name}`,
    name,
    version,
    scope: "excluded",
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...license === undefined ? {} : { licenses: [{ expression: license }] },
    ...integrity === undefined ? {} : { hashes: [hashOf(integrity)] },
  }));
  const [bun, ...libraries] = inside.map((one) => one["bom-ref"]);
  const subject = `patchbay@${edition.version}`;
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(`${subject} ${edition.commit}`)}`,
    version: 1,
    metadata: {
      timestamp: new Date(edition.epoch * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": subject,
        name: "patchbay",
        version: edition.version,
        description: SUMMARY,
        licenses: [{ expression: manifest.license }],
      },
      properties: [{ name: "patchbay:commit", value: edition.commit }],
    },
    components: [...inside, ...tools],
    dependencies: [{ ref: subject, dependsOn: [bun!] }, { ref: bun!, dependsOn: libraries }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Of the lockfile, without those that only other platforms have. */
function npmPackages(): { name: string; version: string; license?: string; integrity?: string }[] {
  return Object.entries(lock.packages as Record<string, Locked>)
    .filter(([path, { optional }]) => path !== "" && !optional)
    .map(([path, { version, license, integrity }]) => ({
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      version: version!,
      ...license === undefined ? {} : { license },
      ...integrity === undefined ? {} : { integrity },
    }));
}

/** npm writes a digest in base 64 behind its name. */
export function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm, digest] = integrity.split("-") as [string, string];
  if (algorithm !== "sha512") throw new Error(`package-lock.json has a digest by ${algorithm}, not sha512`);
  return { alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") };
}

/** The same for the same text, as RFC 9562 has it for digests of our own (version 8). */
function uuidOf(text: string): string {
  const bytes = new Bun.CryptoHasher("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = bytes[6]! & 0x0f | 0x80;
  bytes[8] = bytes[8]! & 0x3f | 0x80;
  const digits = bytes.toString("hex");
  return [0, 8, 12, 16, 20].map((at, index, all) => digits.slice(at, all[index + 1])).join("-");
}
