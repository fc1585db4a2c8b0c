/** Two plugins of a network that make one interface: the second one finds the link of the first. */
import { CniError, INTERNAL } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import type { ResourceKind } from "../contract/resource.ts";

export function madeEarlier(message: string, code = INTERNAL, cause?: unknown): CniError {
  return new CniError(code, message, "an earlier plugin of the network makes it", {
    cause,
    nextStep: (network) =>
      `only one plugin of network ${network} may make the interface; another network makes another`,
  });
}

export function isMadeEarlier(ifName: string, prevResult: Result | undefined): boolean {
  return prevResult?.interfaces?.some(({ sandbox, name }) => sandbox && name === ifName) ?? false;
}

/** ADD's error when the name of its link is taken: whoever's attachment is there, it is this one's. */
export function explained(
  error: unknown,
  { isContainerLink }: Pick<ResourceKind<never>, "isContainerLink">,
  ifName: string,
  prevResult: () => Result | undefined,
): unknown {
  if (!isContainerLink || !(error instanceof CniError)) return error;
  try {
    if (!isMadeEarlier(ifName, prevResult())) return error;
  } catch {
    return error;
  }
  return madeEarlier(error.message, error.code, error);
}
