/** The names of the reference plugin's chains in the table filter of iptables; that of one more is configured. */
export const FORWARD_CHAIN = "CNI-FORWARD";
export const STAGE_1 = "CNI-ISOLATION-STAGE-1";
export const STAGE_2 = "CNI-ISOLATION-STAGE-2";
