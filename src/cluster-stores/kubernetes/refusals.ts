/** What the API server answers to a request that it does not carry out, as sentences with a next step. */
import { valueAt } from "../../cni/json.ts";
import type { ApiAnswer } from "./api.ts";
import { API_GROUP } from "./objects.ts";

const KINDS_FILE = "crds.yaml", ROLE_FILE = "rbac.yaml";

/** The kinds that are there are not those that this program knows. */
export const OTHER_KINDS =
  `the kinds of ${API_GROUP} that are installed are of another version: kubectl apply -f ${KINDS_FILE}`;

/** `as` is whom the server takes this for, where that is known. */
export function apiRefusal(answer: ApiAnswer, as?: string): string {
  const { status, message, credential } = answer, { server } = credential;
  if (status === 401) {
    return `${server} does not know ${credential.source()}: it has expired, or is another cluster's; renew it there`;
  }
  if (isKindUnknown(answer)) {
    return `${server} has no kinds of ${API_GROUP}: kubectl apply -f ${KINDS_FILE}`;
  }
  if (isKindGoing(answer)) {
    return `${server}: ${message}: somebody deletes the kinds of ${API_GROUP}, with all that is of them`;
  }
  if (status === 403) {
    return `${server}: ${message}: kubectl apply -f ${ROLE_FILE}, and ask with a credential that has its role`;
  }
  if (status === 422) return `${server}: ${message}${as === undefined ? "" : ` (asked as ${as})`}`;
  if (status === 429) return `${server} has too much to do: ${message}`;
  return `${server} answers ${status}: ${message === "" ? "nothing more" : message}`;
}

/** A 404 that names no object is not about one. */
export function isKindUnknown({ status, body }: ApiAnswer): boolean {
  return status === 404 && valueAt(body, "details", "name") === undefined;
}

function isKindGoing({ status, message }: ApiAnswer): boolean {
  return (status === 403 || status === 405) && message.includes("definition is terminating");
}
