/** Numbers of linux/sock_diag.h and linux/inet_diag.h (Linux 6.18), and states of net/tcp_states.h. */
export const SOCK_DIAG_BY_FAMILY = 20;

// attributes of an answer
export const INET_DIAG_SKV6ONLY = 11;

/** A socket of UDP in this state is bound, and connected to nobody. */
export const TCP_CLOSE = 7;
export const TCP_LISTEN = 10;
