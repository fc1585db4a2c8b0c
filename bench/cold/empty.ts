/** An empty program: the cost of the compiled runtime. */
export {};
