/** Nothing at all: what the compiled runtime costs. */
export {};
