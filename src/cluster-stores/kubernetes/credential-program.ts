/** Programs that answer with a credential, as kubeconfigs of clouds name them: client.authentication.k8s.io/v1. */
import { errorText, undefinedOnError } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import { environmentForChild } from "../../ffi/environment.ts";
import { readConfiguredFile } from "../../ffi/files.ts";
import { findInPath } from "../../ffi/find-in-path.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { hasSucceeded } from "../../ffi/spawn.ts";
import type { Finished } from "../../process/run-program.ts";
import { runTrusted } from "../../process/trusted-executable.ts";
import { type ApiAccess, type CredentialProgram, EXEC_VERSION } from "./access.ts";

export interface ProgramsCredential {
  token?: string;
  certificate?: string;
  key?: string;
  /** In milliseconds since 1970; Infinity where it does not say. */
  endsAt: number;
}

/** Nothing else is done meanwhile, so it must not take long. */
const PATIENCE_MS = 3000;

/** Throws an error that names the program. */
export function askProgram(program: CredentialProgram, access: ApiAccess): ProgramsCredential {
  const path = program.path.includes("/") ? program.path : findInPath(program.path);
  if (path === undefined) throw failed(program, "it is not in PATH");
  let finished: Finished;
  try {
    const environment = environmentForChild({
      ...program.environment,
      KUBERNETES_EXEC_INFO: JSON.stringify(question(program, access)),
    });
    finished = runTrusted(
      { path, argv: [path, ...program.args], environment, patienceMs: PATIENCE_MS, hasOwnGroup: true },
      new Uint8Array(),
    );
  } catch (error) {
    throw failed(program, errorText(error));
  }
  if (!hasSucceeded(finished.ending)) {
    throw failed(program, `it failed: ${fromUtf8(finished.stderr).trim().slice(-500)}`);
  }
  return answerFrom(program, fromUtf8(finished.stdout));
}

function failed({ path, installHint }: CredentialProgram, why: string): Error {
  const hint = installHint === undefined ? "" : ` (${installHint.trim()})`;
  return new Error(`${path}, which the kubeconfig names for a credential: ${why}${hint}`);
}

function question({ wantsCluster }: CredentialProgram, { server, serverName, ca }: ApiAccess): object {
  const authority = ca === undefined ? undefined : "text" in ca ? ca.text : readConfiguredFile(ca.file);
  const cluster = {
    server,
    "tls-server-name": serverName,
    "certificate-authority-data": authority === undefined ? undefined : btoa(authority),
  };
  return {
    apiVersion: EXEC_VERSION,
    kind: "ExecCredential",
    spec: { interactive: false, ...wantsCluster && { cluster } },
  };
}

function answerFrom(program: CredentialProgram, text: string): ProgramsCredential {
  const answer = undefinedOnError(() => JSON.parse(text) as unknown);
  if (answer === undefined) throw failed(program, "it answers no JSON");
  const status = isObject(answer) && answer["apiVersion"] === EXEC_VERSION ? answer["status"] : undefined;
  if (!isObject(status)) throw failed(program, `it answers no "status" of ${EXEC_VERSION}`);
  const [token, certificate, key, ends] = ["token", "clientCertificateData", "clientKeyData", "expirationTimestamp"]
    .map((name) => typeof status[name] === "string" ? status[name] : undefined);
  if (token === undefined && (certificate === undefined || key === undefined)) {
    throw failed(program, "it answers neither a token nor a certificate with its key");
  }
  const endsAt = ends === undefined ? Infinity : Date.parse(ends);
  if (Number.isNaN(endsAt)) throw failed(program, `its "expirationTimestamp", ${JSON.stringify(ends)}, is no time`);
  return { token, certificate, key, endsAt };
}
