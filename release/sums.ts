/** Digests of the files, and a signature of the digests. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "./provenance.ts";
import { output } from "./run.ts";

export const SUMS = "SHA256SUMS", SIGNATURE = `${SUMS}.sig`;
/** A signature made for another purpose does not verify (ssh-keygen(1), -n). */
export const SIGNED_FOR = "patchbay-release";

export function digestsIn(folder: string): Digest[] {
  return readdirSync(folder).sort().map((name) => {
    const sha256 = new Bun.CryptoHasher("sha256").update(readFileSync(join(folder, name))).digest("hex");
    return { name, sha256 };
  });
}

/** As sha256sum(1) prints and checks them. */
export function writeSums(folder: string): void {
  const lines = digestsIn(folder).map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  writeFileSync(join(folder, SUMS), lines.join(""));
}

/** The key is a file of ssh-keygen's. An agent may hold it when the file is the public half. */
export function sign(folder: string, key: string): void {
  rmSync(join(folder, SIGNATURE), { force: true });
  const agent = process.env.SSH_AUTH_SOCK;
  const env: Record<string, string> = agent === undefined ? {} : { SSH_AUTH_SOCK: agent };
  output(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", SIGNED_FOR, SUMS], folder, env);
}
