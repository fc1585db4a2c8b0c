/** What engines call a container, beside its ID. */
import type { LedgerRecord } from "../ledger/record.ts";

interface Recorded {
  ledgers: readonly LedgerRecord[];
  cached?: { cniArgs: string };
}

/** The first is shown. Kubernetes' engines write a pod's name and namespace into CNI_ARGS, and podman a container's name. */
export function containerNames({ ledgers, cached }: Recorded): string[] {
  const texts = [cached?.cniArgs ?? "", ...ledgers.map(({ header }) => header.cniArgs)];
  return [...new Set(texts.flatMap(namesInArguments))];
}

/** `cniArgs`: CNI_ARGS. */
export function namesInArguments(cniArgs: string): string[] {
  const valueOf = (key: string) =>
    cniArgs.split(";").findLast((pair) => pair.startsWith(`${key}=`))?.slice(key.length + 1);
  const name = valueOf("K8S_POD_NAME"), namespace = valueOf("K8S_POD_NAMESPACE");
  if (!name || /[\s\p{Cc}]/u.test(name + namespace)) return [];
  // podman says a container's name in both places.
  return namespace && namespace !== name ? [`${namespace}/${name}`, name] : [name];
}
