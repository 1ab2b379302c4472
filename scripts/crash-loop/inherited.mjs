/**
 * What processes take along that are started with an environment of their own: where programs are, and where Node keeps
 * what it has compiled, if it does.
 */
const { PATH, NODE_COMPILE_CACHE } = process.env

export const inherited = { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) }
