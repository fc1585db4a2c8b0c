import type { Owner } from "../../../contract/owner.ts";
import type { NatBackend } from "../shared/nat-backend.ts";

export interface MasqueradeSpec extends Owner {
  backend: NatBackend;
  /** With prefix: `10.88.0.5/16`. */
  addresses: string[];
}
