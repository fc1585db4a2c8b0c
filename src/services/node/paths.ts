/** What the agent keeps over boots, with the leases of pools. */
export const DATA_DIRECTORY = "/var/lib/patchbay";
