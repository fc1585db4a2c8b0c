/** The lease an IPAM plugin gave, as a resource: making it is `Ipam.add`, the rest is delegated verb by verb. */
import { errorText } from "../../cni/error.ts";
import { delegate } from "./delegate.ts";
import type { Invocation } from "../run.ts";
import type { ResourceKind } from "../../contract/resource.ts";

interface IpamSpec {
  type: string;
}

/** `invocation` is the call whose configuration the delegate is to see: for DEL, the one ADD was given. */
export function ipamKind(invocation: Invocation): ResourceKind<IpamSpec> {
  return {
    kind: "ipam",
    unmade: undefined,
    apply: () => {
      throw new Error("a lease is made by Ipam.add");
    },
    verify({ type }, host) {
      try {
        delegate(type, "CHECK", { ...invocation, host });
        return [];
      } catch (error) {
        return [errorText(error)];
      }
    },
    remove: ({ type }, host) => void delegate(type, "DEL", { ...invocation, host }),
    describe: ({ type }) => `addresses leased by ${type}`,
  };
}
