/**
 * What a request to the API server is sent with. Tokens, certificates and authorities are files that others replace while
 * this runs, so they are read again each minute, and when the server refuses what was sent.
 */
import type { KubernetesConf } from "../../cluster/configuration.ts";
import { undefinedOnError } from "../../cni/error.ts";
import { identify } from "../../ffi/files.ts";
import { certificatesIn, type HttpIdentity } from "../credential-files.ts";
import { accessOf, type ApiAccess, type Material } from "./access.ts";
import { askProgram, type ProgramsCredential } from "./credential-program.ts";

export interface Credential {
  server: string;
  tls: HttpIdentity;
  token?: string;
  /** For sentences: what tells the server who asks, where that is from, and how old it is. */
  source(): string;
}

const FRESH_MS = 60_000;

export class Credentials {
  private read?: { credential: Credential; at: number };
  private programs?: ProgramsCredential;

  constructor(private readonly conf: KubernetesConf) {}

  /** Throws an error that says which file is wrong, and how. */
  current(): Credential {
    const { read } = this;
    if (read !== undefined && performance.now() - read.at < FRESH_MS && !this.isExpired()) return read.credential;
    const credential = this.readAnew(accessOf(this.conf));
    this.read = { credential, at: performance.now() };
    return credential;
  }

  /** The server has refused it. */
  renew(): void {
    this.read = undefined;
    this.programs = undefined;
  }

  /** A date is all that the program says. */
  private isExpired(): boolean {
    return this.programs !== undefined && this.programs.endsAt <= Date.now();
  }

  private readAnew(access: ApiAccess): Credential {
    const { server, serverName, ca, certificate, key, token, program } = access;
    if (program !== undefined && (this.programs === undefined || this.isExpired())) {
      this.programs = askProgram(program, access);
    }
    const given = program === undefined ? undefined : this.programs, { conf } = this;
    return {
      server,
      tls: {
        ca: textOf("certificate-authority", ca),
        cert: given?.certificate ?? textOf("client-certificate", certificate),
        key: given?.key ?? textOf("client-key", key),
        serverName,
        nameKey: "tls-server-name",
        caFrom: ca === undefined ? "an authority that the runtime knows" : placeOf(ca, conf),
        certFrom: program?.path ?? (certificate && placeOf(certificate, conf)),
      },
      token: given?.token ?? textOf("token", token)?.trim(),
      source: () => sourceOf(access, conf),
    };
  }
}

/** Who else may read the files is not judged: everybody in a pod may read its token. */
function textOf(name: string, material: Material | undefined): string | undefined {
  return material === undefined || "text" in material
    ? material?.text
    : certificatesIn({ name, path: material.file });
}

function placeOf(material: Material, { kubeconfig }: KubernetesConf): string {
  return "file" in material ? material.file : kubeconfig!;
}

function sourceOf({ program, token, certificate }: ApiAccess, conf: KubernetesConf): string {
  if (program !== undefined) return `the credential of ${program.path}`;
  const material = token ?? certificate;
  if (material === undefined) return `${conf.kubeconfig}, which has no credential`;
  const place = placeOf(material, conf);
  return `the ${token === undefined ? "certificate" : "token"} in ${place}${ageOf(place)}`;
}

function ageOf(path: string): string {
  const file = undefinedOnError(() => identify(path));
  if (file === undefined) return "";
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - file.modified));
  return ` (written ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} ago)`;
}
