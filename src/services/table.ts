/** The services: what the command line, `install` and packages know of each (CONTRIBUTING.md, "Add a daemon"). */
import { dhcpService } from "./dhcp/as-service.ts";
import { nodeService } from "./node/as-service.ts";
import { residentService } from "./resident.ts";
import type { ServiceRow } from "./service.ts";

export const services: readonly ServiceRow[] = [residentService, dhcpService, nodeService];
