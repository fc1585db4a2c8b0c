/** Authorities and certificates of tests, made by openssl(1): short keys of elliptic curves, which are made at once. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface CertificateFiles {
  certFile: string;
  keyFile: string;
}

export interface CertificateRequest {
  /** `IP:127.0.0.1`, `DNS:n1` */
  names: readonly string[];
  /** Without it, there is none. */
  commonName?: string;
  /** A negative number: it has expired. */
  days?: number;
}

export class Certificates implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "certificates-"));
  private count = 0;

  /** Whose certificate is in the file that is returned. */
  authority(name: string): CertificateFiles {
    const files = this.files(name);
    openssl([
      ..."req -x509 -nodes -days 30 -newkey ec -pkeyopt ec_paramgen_curve:P-256".split(" "),
      ...["-keyout", files.keyFile, "-out", files.certFile, "-subj", `/CN=${name}`],
    ]);
    return files;
  }

  signedBy(authority: CertificateFiles, { names, commonName, days = 30 }: CertificateRequest): CertificateFiles {
    const files = this.files(`certificate-${++this.count}`), request = `${files.certFile}.csr`;
    const extensions = `${files.certFile}.ext`;
    const usage = "extendedKeyUsage=serverAuth,clientAuth";
    writeFileSync(extensions, `subjectAltName=${names.join(",")}\n${usage}\n`);
    openssl([
      ..."req -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256".split(" "),
      ...["-keyout", files.keyFile, "-out", request, "-subj", commonName === undefined ? "/" : `/CN=${commonName}`],
    ]);
    openssl([
      ...["x509", "-req", "-in", request, "-CA", authority.certFile, "-CAkey", authority.keyFile],
      ...["-CAcreateserial", "-days", `${days}`, "-out", files.certFile, "-extfile", extensions],
    ]);
    return files;
  }

  file(name: string, text: string, mode = 0o600): string {
    const path = join(this.directory, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true });
  }

  private files(name: string): CertificateFiles {
    return { certFile: join(this.directory, `${name}.crt`), keyFile: join(this.directory, `${name}.key`) };
  }
}

function openssl(options: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...options]);
  if (exitCode !== 0) throw new Error(`openssl ${options[0]}: ${stderr}`);
}
