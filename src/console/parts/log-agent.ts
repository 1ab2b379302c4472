/** The agent whose strand the log is. */
export const logAgent = 'server::log'
