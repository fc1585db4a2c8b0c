/** Files with certificates, keys and passwords. They are read whenever they are needed: what is renewed counts at once. */
import { errorText } from "../cni/error.ts";
import { identify, readConfiguredFile } from "../ffi/files.ts";

/** With which certificates, as PEM. Without `ca`, the runtime's authorities and the system's NODE_EXTRA_CA_CERTS count. */
export interface HttpIdentity {
  ca?: string;
  cert?: string;
  key?: string;
  /** The name that the server's certificate has, where that is not the address's. */
  serverName?: string;
  /** The configuration's key for that name. */
  nameKey: string;
  /** Where they are from, for sentences. */
  caFrom: string;
  certFrom?: string;
}

/** `name` is the configuration's key, for the sentence. */
export interface NamedFile {
  name: string;
  path: string;
}

export class CredentialError extends Error {}

export function certificatesIn({ name, path }: NamedFile): string {
  let text: string | undefined;
  try {
    text = readConfiguredFile(path);
  } catch (error) {
    throw new CredentialError(`${name}: ${path} cannot be read: ${errorText(error)}`);
  }
  if (text === undefined) throw new CredentialError(`${name}: ${path} is not there`);
  if (text.trim() === "") throw new CredentialError(`${name}: ${path} is empty`);
  return text;
}

/** The owner's group may read it, as Debian's ssl-cert does; others may not, and only the owner may write. */
const OTHERS = 0o027;

/** What only this host's administrator and its programs may know. */
export function secretIn(file: NamedFile): string {
  const text = certificatesIn(file), { name, path } = file, mode = identify(path).mode & 0o777;
  if ((mode & OTHERS) === 0) return text;
  throw new CredentialError(
    `${name}: others may read or write ${path} (mode ${mode.toString(8)}): chmod 600 ${path}`,
  );
}

/** Editors end a file with a line's end, which is not part of the password. */
export function passwordIn(file: NamedFile): string {
  return secretIn(file).replace(/\r?\n$/, "");
}
