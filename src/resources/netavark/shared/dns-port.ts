/** Where programs ask for names. When aardvark-dns listens on another port, rules lead there. */
export const DNS_PORT = 53;
