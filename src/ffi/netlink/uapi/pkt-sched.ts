/** Numbers of linux/pkt_sched.h (Linux 6.18). */

export const TC_H_ROOT = 0xffffffff;
export const TC_H_INGRESS = 0xfffffff1;

// enum: attributes of tbf
export const TCA_TBF_PARMS = 1;
export const TCA_TBF_RATE64 = 4;

// enum: attributes of htb and its classes
export const TCA_HTB_PARMS = 1;
export const TCA_HTB_INIT = 2;
export const TCA_HTB_RATE64 = 6;
export const TCA_HTB_CEIL64 = 7;
/** TC_HTB_PROTOVER */
export const HTB_VERSION = 3;
