/**
 * A bill of materials (CycloneDX 1.6): what is inside of the program and, besides, in the image; as excluded, what they are
 * built with.
 */
import manifest from "../package.json";
import type { Edition } from "./edition.ts";
import type { CLibrary } from "./image/c-library.ts";
import { npmPackages } from "./npm-packages.ts";
import { runtimeParts } from "./runtime-parts.ts";

export function billOfMaterials(edition: Edition, ofImage: readonly CLibrary[]): string {
  const inside = runtimeParts().map((part) => ({
    type: part.name === "bun" ? "platform" : "library",
    "bom-ref": `part:${part.purl ?? part.name}`,
    name: part.name,
    version: part.version,
    scope: "required",
    licenses: [{ expression: part.licence }],
    ...part.copyright.length === 0 ? {} : { copyright: part.copyright.join("\n") },
    ...part.purl === undefined ? {} : { purl: part.purl },
    externalReferences: [{ type: "vcs", url: part.source }],
  }));
  const tools = npmPackages().filter(({ isOptional }) => !isOptional).map((
    { name, version, purl, licence, sha512 },
  ) => ({
    type: "library",
    "bom-ref": `tool:${name}`,
    name,
    version,
    scope: "excluded",
    purl,
    ...licence === undefined ? {} : { licenses: [{ expression: licence }] },
    hashes: [{ alg: "SHA-512", content: sha512 }],
  }));
  const beside = ofImage.map(({ architecture, version, purl, sha256 }) => ({
    type: "library",
    "bom-ref": `image:libc6:${architecture}`,
    name: "libc6",
    version,
    scope: "optional",
    description: "in the container image alone",
    licenses: [{ expression: "LGPL-2.1-or-later" }],
    purl,
    hashes: [{ alg: "SHA-256", content: sha256 }],
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
        description: manifest.description,
        licenses: [{ expression: manifest.license }],
      },
      properties: [{ name: "patchbay:commit", value: edition.commit }],
    },
    components: [...inside, ...beside, ...tools],
    dependencies: [{ ref: subject, dependsOn: [bun!] }, { ref: bun!, dependsOn: libraries }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The same for the same text, as RFC 9562 has it for digests of our own (version 8). */
function uuidOf(text: string): string {
  const bytes = new Bun.CryptoHasher("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = bytes[6]! & 0x0f | 0x80;
  bytes[8] = bytes[8]! & 0x3f | 0x80;
  const digits = bytes.toString("hex");
  return [0, 8, 12, 16, 20].map((at, index, all) => digits.slice(at, all[index + 1])).join("-");
}
