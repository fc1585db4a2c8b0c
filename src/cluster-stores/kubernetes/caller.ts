/** Whom the API server takes this program for, where it tells: from Kubernetes 1.27 on. */
import { valueAt } from "../../cni/json.ts";
import type { ApiAnswer, KubernetesApi } from "./api.ts";

export interface ApiCaller {
  user: string;
  /** Whose records it may write, where a policy holds nodes to their own. */
  node?: string;
}

const VERSIONS = ["v1", "v1beta1"] as const;
/** In tokens of pods, from Kubernetes 1.30 on. */
const NODE_CLAIM = "authentication.kubernetes.io/node-name";
const KUBELET = "system:node:";

/** Undefined where the server does not tell. Throws StoreSilent. */
export async function askWhoCalls(api: KubernetesApi): Promise<ApiCaller | undefined> {
  for (const version of VERSIONS) {
    const apiVersion = `authentication.k8s.io/${version}`;
    const path = `/apis/${apiVersion}/selfsubjectreviews`;
    const answer = await api.ask({ method: "POST", path, body: { apiVersion, kind: "SelfSubjectReview" } });
    if (answer.status === 201) return callerIn(answer);
    if (answer.status !== 404) return undefined;
  }
  return undefined;
}

function callerIn({ body }: ApiAnswer): ApiCaller | undefined {
  const info = valueAt(body, "status", "userInfo"), user = valueAt(info, "username");
  if (typeof user !== "string") return undefined;
  const claimed = valueAt(info, "extra", NODE_CLAIM);
  const node = user.startsWith(KUBELET)
    ? user.slice(KUBELET.length)
    : Array.isArray(claimed)
    ? claimed[0]
    : undefined;
  return { user, ...typeof node === "string" && { node } };
}
