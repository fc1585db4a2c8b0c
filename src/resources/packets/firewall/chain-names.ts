/** The chains of the reference plugin in the table filter of iptables, but for the one that is configured. */
export const FORWARD_CHAIN = "CNI-FORWARD";
export const STAGE_1 = "CNI-ISOLATION-STAGE-1";
export const STAGE_2 = "CNI-ISOLATION-STAGE-2";
