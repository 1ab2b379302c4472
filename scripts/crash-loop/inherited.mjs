/** The environment that started processes inherit: the path of programs, and Node's compile cache, if set. */
const { PATH, NODE_COMPILE_CACHE } = process.env

export const inherited = { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) }
